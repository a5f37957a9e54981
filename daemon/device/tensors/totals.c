/* Sums that stat tells without looking at any tensor. Does not know that tensors may overlap: overlap_count.h. */
#include "daemon/device/tensors/totals.h"

#include <errno.h>

int totals_init(struct totals *totals, const struct heap *heap, const struct npumem_geometry *geometry)
{
	*totals = (struct totals){
		.differences = heap_zalloc(heap, (size_t)geometry->n_npus + 1, sizeof(*totals->differences))};
	return totals->differences ? 0 : -ENOMEM;
}

void totals_deinit(struct totals *totals, const struct heap *heap)
{
	heap_free(heap, totals->differences);
}

void totals_add(struct totals *totals, const struct npumem_geometry *geometry, const struct npumem_place *place,
		int64_t sign)
{
	int64_t bytes = sign * place->words_n * place->shape.h * place->shape.w * place->word_bytes;
	int64_t n_npus = geometry->n_npus, end = place->start_npu + place->shape.c % n_npus;
	totals->blocks.data += sign * place->blocks.data;
	totals->blocks.dummy += sign * place->blocks.dummy;
	totals->blocks.padding += sign * place->blocks.padding;
	totals->blocks.empty += sign * place->blocks.empty;
	/* Whole rounds of channels are the same on every NPU; the rest goes round at most once. */
	totals->everywhere += place->shape.c / n_npus * bytes;
	totals->differences[place->start_npu] += bytes;
	if (end > n_npus) {
		totals->differences[0] += bytes;
		end -= n_npus;
	}
	totals->differences[end] -= bytes;
	if (place->last_w == place->shape.w)
		return;
	/* The last channel of a matrix may be narrower. */
	int64_t last = (place->start_npu + place->shape.c - 1) % n_npus;
	bytes = bytes / place->shape.w * (place->shape.w - place->last_w);
	totals->differences[last] -= bytes;
	totals->differences[last + 1] += bytes;
}

void totals_of_npus(const struct totals *totals, const struct npumem_geometry *geometry, int64_t *npus)
{
	int64_t here = totals->everywhere;
	for (int64_t npu = 0; npu < geometry->n_npus; npu++)
		npus[npu] = here += totals->differences[npu];
}
