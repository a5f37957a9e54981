/* The matrix layout ("Matrix Layout"): a matrix N by M as the tensor [N, ceil(M / W), 1, W] in the aligned layout.
 * The last channel holds what is left of a row; the rest of its block is padding. */
#include <inttypes.h>

#include "include/formulas/layout_row.h"
#include "include/formulas/layouts/aligned.h"
#include "include/formulas/sizes.h"
#include "include/formulas/widths.h"

static int matrix_shape(const struct npumem_geometry *geometry, const struct npumem_spec *spec,
			struct npumem_place *place, struct npumem_error *error)
{
	int status = layout_row_check_dim("rows", spec->rows, error);
	if (!status)
		status = layout_row_check_dim("cols", spec->cols, error);
	if (status)
		return status;
	if (spec->w < 0 || spec->w > spec->cols)
		return npumem_error_set(error, NPUMEM_INVALID,
					"w is %" PRId64 ", which is not in 1..%" PRId64 ", the columns", spec->w,
					spec->cols);
	int64_t w = spec->w;
	if (w == 0)
		w = widths_best(geometry, place->start_npu, sizes_ceil_div(spec->rows, place->lanes), spec->cols,
				place->word_bytes)
			    .w;
	int64_t channels = sizes_ceil_div(spec->cols, w);
	place->rows = spec->rows;
	place->cols = spec->cols;
	place->w = w;
	place->shape = (struct npumem_dims){.n = spec->rows, .c = channels, .h = 1, .w = w};
	place->last_w = spec->cols - (channels - 1) * w;
	return 0;
}

const struct layout_row layout_row_matrix = {
	.whole_blocks = true,
	.set_shape = matrix_shape,
	.set_stride = aligned_stride,
	.words_per_npu = layout_row_block_words,
	.empty_words = layout_row_empty_blocks,
};
