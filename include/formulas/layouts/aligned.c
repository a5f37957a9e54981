/* The aligned layout ("128-Byte Aligned Layout"): each feature is dense and starts at a multiple of the EU bytes,
 * which are 128 for the seed's part and less for others. */
#include "include/formulas/layout_row.h"
#include "include/formulas/layouts/aligned.h"
#include "include/formulas/sizes.h"

/* What a block and the tensor's address are multiples of. A word may be wider than the alignment of a part with
 * narrow units, and must not straddle its own multiple. */
static int64_t aligned_unit(const struct npumem_geometry *geometry, int64_t word_bytes)
{
	return geometry->eu_bytes > word_bytes ? geometry->eu_bytes : word_bytes;
}

int64_t aligned_block_bytes(const struct npumem_geometry *geometry, int64_t words, int64_t word_bytes)
{
	return sizes_round_up(sizes_mul(words, word_bytes), aligned_unit(geometry, word_bytes));
}

int aligned_stride(const struct npumem_geometry *geometry, const struct npumem_spec *spec,
		   struct npumem_place *place, struct npumem_error *error)
{
	(void)spec;
	(void)error;
	int64_t feature = place->shape.h * place->shape.w;
	place->stride.w = 1;
	place->stride.h = place->shape.w;
	int64_t block = aligned_block_bytes(geometry, feature, place->word_bytes);
	place->stride.c = block == INT64_MAX ? INT64_MAX : block / place->word_bytes;
	place->stride.n = sizes_mul(place->stride.c, place->channels_per_npu);
	place->align_bytes = aligned_unit(geometry, place->word_bytes);
	return 0;
}

const struct layout_row layout_row_aligned = {
	.whole_blocks = true,
	.set_shape = layout_row_shape,
	.set_stride = aligned_stride,
	.words_per_npu = layout_row_block_words,
	.empty_words = layout_row_empty_blocks,
};
