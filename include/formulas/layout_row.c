/* The table of layouts, and what several of them share. */
#include <inttypes.h>

#include "include/formulas/layout_row.h"
#include "include/formulas/sizes.h"

static const struct {
	int number;
	const struct layout_row *row;
} rows[] = {
#define LAYOUT(NAME, name, number) {number, &layout_row_##name},
#include <npumem/layouts.def>
#undef LAYOUT
};

const struct layout_row *layout_row_by_number(int number)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].number == number)
			return rows[i].row;
	}
	return NULL;
}

int layout_row_check_dim(const char *what, int64_t value, struct npumem_error *error)
{
	if (value >= 1 && value <= INT32_MAX)
		return 0;
	return npumem_error_set(error, NPUMEM_INVALID, "%s is %" PRId64 ", which is not in 1..%d", what, value,
				INT32_MAX);
}

int layout_row_shape(const struct npumem_geometry *geometry, const struct npumem_spec *spec,
		     struct npumem_place *place, struct npumem_error *error)
{
	(void)geometry;
	int status = layout_row_check_dim("dimension N", spec->shape.n, error);
	if (!status)
		status = layout_row_check_dim("dimension C", spec->shape.c, error);
	if (!status)
		status = layout_row_check_dim("dimension H", spec->shape.h, error);
	if (!status)
		status = layout_row_check_dim("dimension W", spec->shape.w, error);
	if (status)
		return status;
	if (spec->rows || spec->cols || spec->w)
		return npumem_error_set(error, NPUMEM_INVALID,
					"rows, cols and w are for the matrix layout, not for %s",
					npumem_layout_name(place->layout));
	place->shape = spec->shape;
	place->last_w = spec->shape.w;
	return 0;
}

int64_t layout_row_block_words(const struct npumem_place *place)
{
	return sizes_mul(place->words_n, place->stride.n);
}

/* Only rows 0 and the last have such blocks, but X * rows - C counts them wherever they are. */
int64_t layout_row_empty_blocks(const struct npumem_geometry *geometry, const struct npumem_place *place)
{
	int64_t blocks = geometry->n_npus * place->channels_per_npu - place->shape.c;
	return place->words_n * blocks * place->stride.c;
}
