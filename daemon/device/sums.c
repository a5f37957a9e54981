/* Sums that stat tells without looking at any tensor. Does not know that tensors may overlap: overlap_count.h. */
#include "daemon/device/sums.h"

#include <errno.h>

int sums_init(struct sums *sums, const struct heap *heap, const struct npumem_geometry *geometry)
{
	*sums = (struct sums){.steps = heap_zalloc(heap, (size_t)geometry->n_npus + 1, sizeof(*sums->steps))};
	return sums->steps ? 0 : -ENOMEM;
}

void sums_deinit(struct sums *sums, const struct heap *heap)
{
	heap_free(heap, sums->steps);
}

void sums_add(struct sums *sums, const struct npumem_geometry *geometry, const struct npumem_place *place,
	      int64_t sign)
{
	int64_t bytes = sign * place->words_n * place->shape.h * place->shape.w * place->word_bytes;
	int64_t n_npus = geometry->n_npus, end = place->start_npu + place->shape.c % n_npus;
	sums->blocks.data += sign * place->blocks.data;
	sums->blocks.dummy += sign * place->blocks.dummy;
	sums->blocks.padding += sign * place->blocks.padding;
	sums->blocks.empty += sign * place->blocks.empty;
	/* Whole rounds of channels are the same on every NPU; the rest goes round at most once. */
	sums->everywhere += place->shape.c / n_npus * bytes;
	sums->steps[place->start_npu] += bytes;
	if (end > n_npus) {
		sums->steps[0] += bytes;
		end -= n_npus;
	}
	sums->steps[end] -= bytes;
}

void sums_of_npus(const struct sums *sums, const struct npumem_geometry *geometry, int64_t *npus)
{
	int64_t here = sums->everywhere;
	for (int64_t npu = 0; npu < geometry->n_npus; npu++)
		npus[npu] = here += sums->steps[npu];
}
