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

void totals_add(struct totals *totals, const struct npumem_geometry *geometry, const struct tensor *tensor,
		int64_t sign)
{
	const struct tensor_packed *packed = &tensor->packed;
	int64_t w = packed->shape.w, data = tensor_data_bytes(tensor);
	int64_t bytes = sign * tensor_words_n(tensor) * packed->shape.h * w * packed->word_bytes;
	int64_t n_npus = geometry->n_npus, start = packed->start_npu, end = start + packed->shape.c % n_npus;
	totals->blocks.data += sign * data;
	totals->blocks.dummy += sign * (tensor_filled_bytes(tensor) - data);
	totals->blocks.padding += sign * (int64_t)packed->padding;
	totals->blocks.empty += sign * (int64_t)packed->empty;
	/* Whole rounds of channels are the same on every NPU; the rest goes round at most once. */
	totals->everywhere += packed->shape.c / n_npus * bytes;
	totals->differences[start] += bytes;
	if (end > n_npus) {
		totals->differences[0] += bytes;
		end -= n_npus;
	}
	totals->differences[end] -= bytes;
	if (packed->last_w == w)
		return;
	/* The last channel of a matrix may be narrower. */
	int64_t last = (start + packed->shape.c - 1) % n_npus;
	bytes = bytes / w * (w - packed->last_w);
	totals->differences[last] -= bytes;
	totals->differences[last + 1] += bytes;
}

void totals_of_npus(const struct totals *totals, const struct npumem_geometry *geometry, int64_t *npus)
{
	int64_t here = totals->everywhere;
	for (int64_t npu = 0; npu < geometry->n_npus; npu++)
		npus[npu] = here += totals->differences[npu];
}
