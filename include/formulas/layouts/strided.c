/* The layout with the caller's own strides ("Strides in Local Memory"). Refuses strides that put two elements on
 * one place, which is decided per NPU: the first and the last block row may lie on different NPUs and then share
 * offsets. */
#include <inttypes.h>
#include <stdio.h>

#include "include/formulas/boxes/lattice.h"
#include "include/formulas/layout_row.h"
#include "include/formulas/sizes.h"

/* The caller's own; where it leads nowhere, as the extent is 1, it may be left out. */
static int take_stride(const char *what, int64_t given, int64_t extent, int64_t *stride,
		       struct npumem_error *error)
{
	*stride = given == 0 && extent == 1 ? 1 : given;
	return layout_row_check_dim(what, *stride, error);
}

static int strided_stride(const struct npumem_geometry *geometry, const struct npumem_spec *spec,
			  struct npumem_place *place, struct npumem_error *error)
{
	(void)geometry;
	const struct npumem_dims *given = &spec->stride;
	struct npumem_dims *stride = &place->stride;
	int status = take_stride("stride N", given->n, place->words_n, &stride->n, error);
	if (!status)
		status = take_stride("stride C", given->c, place->channels_per_npu, &stride->c, error);
	if (!status)
		status = take_stride("stride H", given->h, place->shape.h, &stride->h, error);
	if (!status)
		status = take_stride("stride W", given->w, place->shape.w, &stride->w, error);
	if (status)
		return status;
	place->align_bytes = place->word_bytes;
	return 0;
}

static int64_t strided_words(const struct npumem_place *place)
{
	int64_t words = 1;
	words = sizes_add(words, sizes_mul(place->words_n - 1, place->stride.n));
	words = sizes_add(words, sizes_mul(place->channels_per_npu - 1, place->stride.c));
	words = sizes_add(words, sizes_mul(place->shape.h - 1, place->stride.h));
	words = sizes_add(words, sizes_mul(place->shape.w - 1, place->stride.w));
	return words;
}

/* Block rows that the start NPU has, from row 0 on; no NPU has more. */
static int64_t rows_of_start_npu(const struct npumem_geometry *geometry, const struct npumem_place *place)
{
	return (place->shape.c - 1) / geometry->n_npus + 1;
}

/* The words of one NPU with `rows` block rows; dimensions in the order n, row, h, w. */
static struct lattice box_of(const struct npumem_place *place, int64_t rows)
{
	const struct npumem_dims *stride = &place->stride;
	struct lattice box = {
		.extent = {place->words_n, rows, place->shape.h, place->shape.w},
		.stride = {stride->n, stride->c, stride->h, stride->w},
	};
	/* "When W = 1, H = 1 or N = 1, the relative stride makes no sense", so it may have any size. */
	for (unsigned i = 0; i < LATTICE_DIMS; i++) {
		if (box.extent[i] == 1)
			box.stride[i] = 1;
	}
	return box;
}

static int strided_check(const struct npumem_geometry *geometry, const struct npumem_place *place,
			 struct npumem_error *error)
{
	struct lattice box = box_of(place, rows_of_start_npu(geometry, place));
	int64_t difference[LATTICE_DIMS];
	if (!lattice_collides(&box, difference))
		return 0;
	int64_t one[LATTICE_DIMS], other[LATTICE_DIMS];
	for (unsigned i = 0; i < LATTICE_DIMS; i++) {
		one[i] = difference[i] < 0 ? -difference[i] : 0;
		other[i] = one[i] + difference[i];
	}
	/* The start NPU has channel 0 in row 0, X in row 1, and so on. */
	const struct npumem_dims *stride = &place->stride;
	int64_t words = one[0] * stride->n + one[1] * stride->c + one[2] * stride->h + one[3] * stride->w;
	char first[96], second[96];
	snprintf(first, sizeof(first), "%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64, one[0] * place->lanes,
		 one[1] * geometry->n_npus, one[2], one[3]);
	snprintf(second, sizeof(second), "%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64, other[0] * place->lanes,
		 other[1] * geometry->n_npus, other[2], other[3]);
	npumem_error_set(error, NPUMEM_INVALID,
			 "elements %s and %s (n,c,h,w) lie at the same place: NPU %" PRId64 ", %" PRId64
			 " bytes after the tensor's start",
			 first, second, place->start_npu, words * place->word_bytes);
	npumem_error_text(error, "first", first);
	npumem_error_text(error, "second", second);
	npumem_error_number(error, "npu", place->start_npu);
	npumem_error_number(error, "offset", words * place->word_bytes);
	return NPUMEM_INVALID;
}

/* Offsets that some NPU has a word at, times the NPUs, less the words that there are. */
static int64_t strided_empty(const struct npumem_geometry *geometry, const struct npumem_place *place)
{
	int64_t per_row = place->words_n * place->shape.h * place->shape.w;
	int64_t offsets = per_row * place->channels_per_npu;
	if (place->channels_per_npu > rows_of_start_npu(geometry, place)) {
		/* No NPU has both row 0 and the last, so their offsets may coincide without a collision. */
		struct lattice row = box_of(place, 1);
		offsets -= lattice_shared(&row, (place->channels_per_npu - 1) * place->stride.c);
	}
	return offsets * geometry->n_npus - per_row * place->shape.c;
}

const struct layout_row layout_row_strided = {
	.own_stride = true,
	.set_shape = layout_row_shape,
	.set_stride = strided_stride,
	.words_per_npu = strided_words,
	.check = strided_check,
	.empty_words = strided_empty,
};
