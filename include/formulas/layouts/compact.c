/* The compact layout ("Compact Layout"): features follow each other without a gap. */
#include "include/formulas/layout_row.h"
#include "include/formulas/sizes.h"

static int compact_stride(const struct npumem_geometry *geometry, const struct npumem_spec *spec,
			  struct npumem_place *place, struct npumem_error *error)
{
	(void)geometry;
	(void)spec;
	(void)error;
	place->stride.w = 1;
	place->stride.h = place->shape.w;
	place->stride.c = place->shape.h * place->shape.w;
	place->stride.n = sizes_mul(place->stride.c, place->channels_per_npu);
	/* "The address of the tensor is divisable by 4", for every type; only the 64-bit word of 2ic needs more.
	 */
	place->align_bytes = place->word_bytes > 4 ? place->word_bytes : 4;
	return 0;
}

const struct layout_row layout_row_compact = {
	.whole_blocks = true,
	.set_shape = layout_row_shape,
	.set_stride = compact_stride,
	.words_per_npu = layout_row_block_words,
	.empty_words = layout_row_empty_blocks,
};
