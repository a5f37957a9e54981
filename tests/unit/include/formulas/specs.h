/* Short forms of what nearly every test of the formulas does. */
#ifndef TESTS_FORMULAS_SPECS_H
#define TESTS_FORMULAS_SPECS_H

#include <string.h>

#include <npumem/layout.h>

#include "tests/support/test.h"

/* The array that the seed's figures are drawn for. */
static const struct npumem_geometry specs_seed = {.n_npus = 4, .npu_bytes = 1024, .n_banks = 8, .eu_bytes = 128};

static inline struct npumem_spec specs_tensor(int dtype, int64_t n, int64_t c, int64_t h, int64_t w)
{
	struct npumem_spec spec;
	npumem_spec_init(&spec);
	spec.dtype = dtype;
	spec.shape = (struct npumem_dims){.n = n, .c = c, .h = h, .w = w};
	if (npumem_dtype_is_fixed(dtype))
		spec.frac_bits = 7;
	return spec;
}

static inline struct npumem_spec specs_matrix(int dtype, int64_t rows, int64_t cols, int64_t w)
{
	struct npumem_spec spec = specs_tensor(dtype, 0, 0, 0, 0);
	spec.layout = NPUMEM_MATRIX;
	spec.rows = rows;
	spec.cols = cols;
	spec.w = w;
	return spec;
}

static inline struct npumem_place specs_resolve(const struct npumem_geometry *geometry,
						const struct npumem_spec *spec)
{
	struct npumem_place place;
	struct npumem_error error = {0};
	int status = npumem_place_resolve(geometry, spec, &place, &error);
	ck_assert_msg(status == 0, "refused: %s", error.message);
	return place;
}

/* Refused as INVALID with `part` in the message, and `place` left alone. */
static inline void specs_refused(const struct npumem_geometry *geometry, const struct npumem_spec *spec,
				 const char *part)
{
	struct npumem_place place, before;
	memset(&before, 0x5a, sizeof(before));
	place = before;
	struct npumem_error error = {0};
	int status = npumem_place_resolve(geometry, spec, &place, &error);
	ck_assert_msg(status == NPUMEM_INVALID, "not refused (%d), expected: %s", status, part);
	ck_assert_int_eq(error.status, NPUMEM_INVALID);
	ck_assert_msg(strstr(error.message, part), "\"%s\" does not say \"%s\"", error.message, part);
	ck_assert_int_eq(memcmp(&place, &before, sizeof(place)), 0);
}

static inline void specs_stride_eq(const struct npumem_dims *stride, int64_t n, int64_t c, int64_t h, int64_t w)
{
	ck_assert_int_eq(stride->n, n);
	ck_assert_int_eq(stride->c, c);
	ck_assert_int_eq(stride->h, h);
	ck_assert_int_eq(stride->w, w);
}

/* xorshift64: the same specs on every machine. */
static inline uint64_t specs_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* In least..most. */
static inline int64_t specs_draw(uint64_t *state, int64_t least, int64_t most)
{
	return least + (int64_t)(specs_random(state) % (uint64_t)(most - least + 1));
}

/* Leaves out strides that make no sense, now and then. */
static inline void specs_drop_strides(uint64_t *state, const struct npumem_geometry *geometry,
				      struct npumem_spec *spec, int64_t lanes)
{
	if (spec->shape.n <= lanes && specs_draw(state, 0, 1))
		spec->stride.n = 0;
	if (spec->start_npu + spec->shape.c <= geometry->n_npus && specs_draw(state, 0, 1))
		spec->stride.c = 0;
	if (spec->shape.h == 1 && specs_draw(state, 0, 1))
		spec->stride.h = 0;
	if (spec->shape.w == 1 && specs_draw(state, 0, 1))
		spec->stride.w = 0;
}

/* Any spec that may come along, small enough to be drawn; sizes shrink as the NPUs grow. */
static inline struct npumem_spec specs_any(uint64_t *state, const struct npumem_geometry *geometry)
{
	static const struct {
		int mode, dtype, lanes;
	} types[] = {
		{1, NPUMEM_INT8, 1}, {1, NPUMEM_UINT16, 1}, {1, NPUMEM_FP32, 1},  {1, NPUMEM_FX16, 1},
		{2, NPUMEM_FX8, 4},  {2, NPUMEM_UINT8, 4},  {3, NPUMEM_INT16, 2}, {4, NPUMEM_FP32, 2},
	};
	unsigned type = (unsigned)specs_draw(state, 0, 7);
	int64_t c_most = specs_draw(state, 0, 1) ? 3 * geometry->n_npus : geometry->n_npus + 2;
	int64_t most = geometry->n_npus > 64 ? 2 : 5;
	struct npumem_spec spec =
		specs_tensor(types[type].dtype, specs_draw(state, 1, most + 2), specs_draw(state, 1, c_most),
			     specs_draw(state, 1, most), specs_draw(state, 1, most));
	spec.mode = types[type].mode;
	spec.layout = (int)specs_draw(state, 1, 4);
	spec.start_npu = specs_draw(state, 0, geometry->n_npus - 1);
	if (spec.layout == NPUMEM_MATRIX) {
		spec.rows = spec.shape.n;
		spec.cols = spec.shape.c * specs_draw(state, 1, most);
		spec.w = specs_draw(state, 0, 1) ? 0 : specs_draw(state, 1, spec.cols);
		spec.shape = (struct npumem_dims){0};
	}
	if (spec.layout == NPUMEM_STRIDED) {
		int64_t far = geometry->n_npus > 64 ? 12 : 90;
		spec.stride.n = specs_draw(state, 1, far);
		spec.stride.c = specs_draw(state, 1, far);
		spec.stride.h = specs_draw(state, 1, 20);
		spec.stride.w = specs_draw(state, 1, 4);
		specs_drop_strides(state, geometry, &spec, types[type].lanes);
	}
	return spec;
}

#endif
