/* What a layout decides about a tensor: one row per line of layouts.def, its code in layouts/<name>.c.
 * place.c asks the rows in the order of the members below and never asks which layout it is. */
#ifndef FORMULAS_LAYOUT_ROW_H
#define FORMULAS_LAYOUT_ROW_H

#include <npumem/layout.h>

struct layout_row {
	/* An empty block is empty as a whole, its padding included. False: word by word, where another NPU has
	 * one. */
	bool whole_blocks;
	/* The caller gives the strides. */
	bool own_stride;
	/* Sets shape, last_w and, for a matrix, rows, cols and w. Type, mode and start NPU are set. 0 or INVALID.
	 */
	int (*set_shape)(const struct npumem_geometry *geometry, const struct npumem_spec *spec,
			 struct npumem_place *place, struct npumem_error *error);
	/* Sets stride and align_bytes. words_n and channels_per_npu are set. 0 or INVALID. */
	int (*set_stride)(const struct npumem_geometry *geometry, const struct npumem_spec *spec,
			  struct npumem_place *place, struct npumem_error *error);
	/* Words of one NPU from the start to the end; INT64_MAX where that does not fit. */
	int64_t (*words_per_npu)(const struct npumem_place *place);
	/* Checks that no two elements share a place, once bytes_per_npu is known to fit. 0 or INVALID; NULL where
	 * the layout rules it out. */
	int (*check)(const struct npumem_geometry *geometry, const struct npumem_place *place,
		     struct npumem_error *error);
	/* Words of all NPUs that are empty. */
	int64_t (*empty_words)(const struct npumem_geometry *geometry, const struct npumem_place *place);
};

#define LAYOUT(NAME, name, number) extern const struct layout_row layout_row_##name;
#include <npumem/layouts.def>
#undef LAYOUT

/* NULL for a number that does not exist. */
const struct layout_row *layout_row_by_number(int number);

/* 0, or INVALID naming the dimension: 1..2^31-1, so that a product of two fits 64 bits. */
int layout_row_check_dim(const char *what, int64_t value, struct npumem_error *error);

/* set_shape of the layouts that take N, C, H, W. */
int layout_row_shape(const struct npumem_geometry *geometry, const struct npumem_spec *spec,
		     struct npumem_place *place, struct npumem_error *error);

/* words_per_npu and empty_words of the layouts made of blocks, one C stride long. */
int64_t layout_row_block_words(const struct npumem_place *place);
int64_t layout_row_empty_blocks(const struct npumem_geometry *geometry, const struct npumem_place *place);

/* Block rows [first, end) in which `npu` has a channel; none where first == end. Row 0 is that of channel 0. */
static inline void layout_row_rows(const struct npumem_geometry *geometry, const struct npumem_place *place,
				   int64_t npu, int64_t *first, int64_t *end)
{
	int64_t n_npus = geometry->n_npus;
	*first = npu < place->start_npu;
	/* Rows r with r * X + npu < start + C; both sums are positive. */
	*end = (place->start_npu + place->shape.c + n_npus - 1 - npu) / n_npus;
}

#endif
