#include <stdio.h>

#include "tests/unit/include/formulas/specs.h"

static const struct npumem_geometry bm1684 = {64, 512 * 1024, 8, 128};

TEST(defaults)
{
	struct npumem_spec spec;
	npumem_spec_init(&spec);
	ck_assert_int_eq(spec.start_npu, NPUMEM_ANY);
	ck_assert_int_eq(spec.address, NPUMEM_ANY);
	ck_assert_int_eq(spec.frac_bits, NPUMEM_ANY);
	spec.shape = (struct npumem_dims){1, 1, 1, 1};
	struct npumem_place place = specs_resolve(&bm1684, &spec);
	ck_assert_int_eq(place.dtype, NPUMEM_INT8);
	ck_assert_int_eq(place.layout, NPUMEM_ALIGNED);
	ck_assert_int_eq(place.mode, NPUMEM_MODE_PLAIN);
	ck_assert_int_eq(place.frac_bits, NPUMEM_ANY);
	ck_assert_int_eq(place.start_npu, 0);
	ck_assert_int_eq(place.address, NPUMEM_ANY);
	ck_assert_int_eq(place.npu, NPUMEM_ANY);
	ck_assert_int_eq(place.offset, NPUMEM_ANY);
	ck_assert_int_eq(place.rows + place.cols + place.w, 0);
}

TEST(types)
{
	struct npumem_spec spec = specs_tensor(99, 1, 1, 1, 1);
	specs_refused(&bm1684, &spec, "no element type 99");
	spec.dtype = -1;
	specs_refused(&bm1684, &spec, "no element type -1");
	spec = specs_tensor(NPUMEM_INT8, 1, 1, 1, 1);
	spec.layout = 5;
	specs_refused(&bm1684, &spec, "no layout 5");
	spec = specs_tensor(NPUMEM_INT8, 1, 1, 1, 1);
	spec.mode = 5;
	specs_refused(&bm1684, &spec, "no storage mode 5");
}

/* 4n takes the 8-bit types, 2n the 16-bit ones, 2ic fp32 alone. */
TEST(modes)
{
	for (int dtype = NPUMEM_INT8; dtype <= NPUMEM_FX16; dtype++) {
		struct npumem_spec spec = specs_tensor(dtype, 3, 2, 2, 2);
		unsigned bytes = npumem_dtype_bytes(dtype);
		spec.mode = NPUMEM_MODE_4N;
		if (bytes == 1)
			ck_assert_int_eq(specs_resolve(&bm1684, &spec).lanes, 4);
		else
			specs_refused(&bm1684, &spec, "storage mode 4n takes 8-bit types, not ");
		spec.mode = NPUMEM_MODE_2N;
		if (bytes == 2)
			ck_assert_int_eq(specs_resolve(&bm1684, &spec).lanes, 2);
		else
			specs_refused(&bm1684, &spec, "storage mode 2n takes 16-bit types, not ");
		spec.mode = NPUMEM_MODE_2IC;
		if (dtype == NPUMEM_FP32)
			ck_assert_int_eq(specs_resolve(&bm1684, &spec).word_bytes, 8);
		else
			specs_refused(&bm1684, &spec, "storage mode 2ic takes fp32, not ");
	}
}

TEST(frac_bits)
{
	struct npumem_spec spec = specs_tensor(NPUMEM_FX8, 1, 1, 1, 1);
	static const int64_t fine[] = {0, 7, 127};
	for (unsigned i = 0; i < 3; i++) {
		spec.frac_bits = fine[i];
		ck_assert_int_eq(specs_resolve(&bm1684, &spec).frac_bits, fine[i]);
	}
	spec.frac_bits = 128;
	specs_refused(&bm1684, &spec, "frac_bits 128 of fx8 is not in 0..127");
	spec.frac_bits = -2;
	specs_refused(&bm1684, &spec, "frac_bits -2 of fx8 is not in 0..127");
	spec.frac_bits = NPUMEM_ANY;
	specs_refused(&bm1684, &spec, "fx8 needs frac_bits, in 0..127");
	spec = specs_tensor(NPUMEM_INT16, 1, 1, 1, 1);
	spec.frac_bits = 0;
	specs_refused(&bm1684, &spec, "frac_bits 0 given for int16, which has none");
}

TEST(dimensions)
{
	static const int64_t bad[] = {0, -1, INT64_C(1) << 31, INT64_MAX, INT64_MIN};
	static const char *const names[] = {"dimension N is ", "dimension C is ", "dimension H is ",
					    "dimension W is "};
	for (unsigned d = 0; d < 4; d++) {
		for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			struct npumem_spec spec = specs_tensor(NPUMEM_INT8, 1, 1, 1, 1);
			int64_t *dims[] = {&spec.shape.n, &spec.shape.c, &spec.shape.h, &spec.shape.w};
			*dims[d] = bad[i];
			char part[96];
			snprintf(part, sizeof(part), "%s%ld, which is not in 1..2147483647", names[d],
				 (long)bad[i]);
			specs_refused(&bm1684, &spec, part);
		}
	}
}

/* What belongs to another layout is not dropped in silence. */
TEST(foreign_members)
{
	struct npumem_spec spec = specs_tensor(NPUMEM_INT8, 1, 1, 1, 1);
	spec.rows = 1;
	specs_refused(&bm1684, &spec, "rows, cols and w are for the matrix layout, not for aligned");
	spec = specs_tensor(NPUMEM_INT8, 1, 1, 1, 1);
	spec.w = 1;
	specs_refused(&bm1684, &spec, "matrix layout");
	spec = specs_tensor(NPUMEM_INT8, 1, 1, 1, 1);
	spec.layout = NPUMEM_COMPACT;
	spec.stride.h = 1;
	specs_refused(&bm1684, &spec,
		      "strides are for the strided layout; those of compact follow from the shape");
	spec = specs_matrix(NPUMEM_INT8, 2, 2, 0);
	spec.stride.n = 64;
	specs_refused(&bm1684, &spec, "strides are for the strided layout");
}

/* Sizes beyond an NPU, and products far beyond 64 bits. */
TEST(sizes)
{
	struct npumem_spec spec = specs_tensor(NPUMEM_INT8, 1, 64, 512, 1024);
	struct npumem_place place = specs_resolve(&bm1684, &spec);
	ck_assert_int_eq(place.bytes_per_npu, 524288);
	ck_assert_int_eq(place.blocks.data, 64 * 524288);
	spec.shape.w = 1025;
	struct npumem_error error = {0};
	ck_assert_int_eq(npumem_place_resolve(&bm1684, &spec, &place, &error), NPUMEM_INVALID);
	ck_assert_str_eq(error.message, "the tensor needs 524800 bytes on each NPU; an NPU has 524288");
	ck_assert_int_eq(npumem_error_find(&error, "bytes_per_npu", 0), 524800);
	ck_assert_int_eq(npumem_error_find(&error, "npu_bytes", 0), 524288);
	spec = specs_tensor(NPUMEM_FP32, 1, 1, INT32_MAX, INT32_MAX);
	specs_refused(&bm1684, &spec, "needs more than 9223372036854775807 bytes on each NPU; an NPU has 524288");
	for (int layout = NPUMEM_ALIGNED; layout <= NPUMEM_STRIDED; layout++) {
		for (unsigned ones = 0; ones < 16; ones++) {
			spec = specs_tensor(NPUMEM_FP32, ones & 1 ? 1 : INT32_MAX, ones & 2 ? 1 : INT32_MAX,
					    ones & 4 ? 1 : INT32_MAX, ones & 8 ? 1 : INT32_MAX);
			spec.layout = layout;
			spec.start_npu = 63;
			if (layout == NPUMEM_STRIDED)
				spec.stride = (struct npumem_dims){INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX};
			if (layout == NPUMEM_MATRIX) {
				spec.rows = spec.shape.n;
				spec.cols = spec.shape.c;
				spec.w = ones & 4 ? 0 : ones & 8 ? 1 : spec.cols;
			}
			spec.mode = ones & 1 ? NPUMEM_MODE_2IC : NPUMEM_MODE_PLAIN;
			if (npumem_place_resolve(&bm1684, &spec, &place, NULL) != 0)
				specs_refused(&bm1684, &spec, "bytes on each NPU; an NPU has 524288");
			else
				ck_assert_int_le(place.bytes_per_npu, 524288);
		}
	}
}

TEST(start_npu)
{
	struct npumem_spec spec = specs_tensor(NPUMEM_INT8, 1, 3, 1, 1);
	spec.start_npu = 63;
	struct npumem_place place = specs_resolve(&bm1684, &spec);
	ck_assert_int_eq(place.start_npu, 63);
	ck_assert_int_eq(place.channels_per_npu, 2);
	spec.start_npu = 70;
	specs_refused(&bm1684, &spec, "start NPU 70 is not below the 64 NPUs of this device");
	spec.start_npu = 64;
	specs_refused(&bm1684, &spec, "start NPU 64 is not below the 64 NPUs");
	spec.start_npu = -2;
	specs_refused(&bm1684, &spec, "start NPU -2 is not one of the 64 NPUs");
}

TEST(addresses)
{
	const int64_t s = bm1684.npu_bytes;
	struct npumem_spec spec = specs_tensor(NPUMEM_INT8, 1, 3, 1, 1);
	spec.address = 5 * s + 256;
	struct npumem_place place = specs_resolve(&bm1684, &spec);
	ck_assert_int_eq(place.start_npu, 5);
	ck_assert_int_eq(place.npu, 5);
	ck_assert_int_eq(place.offset, 256);
	ck_assert_int_eq(place.address, 5 * s + 256);
	spec.start_npu = 5;
	ck_assert_int_eq(specs_resolve(&bm1684, &spec).npu, 5);
	spec.start_npu = 6;
	specs_refused(&bm1684, &spec, "start NPU 6 does not go with address 2621696, which is on NPU 5");
	spec.start_npu = NPUMEM_ANY;
	spec.address = 64 * s;
	specs_refused(&bm1684, &spec, "address 33554432 is not below the 33554432 bytes");
	spec.address = -2;
	specs_refused(&bm1684, &spec, "address -2 is not");
	spec.address = 64;
	specs_refused(&bm1684, &spec, "address 64 is not a multiple of 128, as layout aligned needs it");
	spec.shape.h = 129;
	spec.address = 2 * s - 128;
	specs_refused(&bm1684, &spec,
		      "at offset 524160 the tensor's 256 bytes per NPU run past the end of the NPU, at 524288");
	spec.shape.h = 128;
	ck_assert_int_eq(specs_resolve(&bm1684, &spec).offset, s - 128);
}

TEST(place_at)
{
	struct npumem_spec spec = specs_tensor(NPUMEM_FP32, 1, 3, 1, 1);
	spec.start_npu = 2;
	struct npumem_place place = specs_resolve(&bm1684, &spec);
	struct npumem_error error = {0};
	ck_assert_int_eq(npumem_place_at(&bm1684, &place, 0, &error), NPUMEM_INVALID);
	ck_assert_str_eq(error.message, "address 0 is on NPU 0, but the tensor starts at NPU 2");
	ck_assert_int_eq(npumem_place_at(&bm1684, &place, INT64_MAX, NULL), NPUMEM_INVALID);
	ck_assert_int_eq(npumem_place_at(&bm1684, &place, -1, NULL), NPUMEM_INVALID);
	ck_assert_int_eq(place.address, NPUMEM_ANY);
	ck_assert_int_eq(npumem_place_at(&bm1684, &place, 2 * 524288 + 128, NULL), 0);
	ck_assert_int_eq(place.address, 2 * 524288 + 128);
	ck_assert_int_eq(place.offset, 128);
	ck_assert_int_eq(npumem_place_at(&bm1684, &place, 2 * 524288 + 4, NULL), NPUMEM_INVALID);
	ck_assert_int_eq(place.offset, 128);
}

/* What an address must be divisible by: the EU bytes, 4, or the word. */
TEST(alignment)
{
	static const struct {
		int layout, dtype, mode;
		int64_t eu_bytes, align;
	} cases[] = {
		{NPUMEM_ALIGNED, NPUMEM_INT8, NPUMEM_MODE_PLAIN, 128, 128},
		{NPUMEM_ALIGNED, NPUMEM_FP32, NPUMEM_MODE_PLAIN, 16, 16},
		{NPUMEM_ALIGNED, NPUMEM_FP32, NPUMEM_MODE_2IC, 4, 8},
		{NPUMEM_MATRIX, NPUMEM_FP32, NPUMEM_MODE_PLAIN, 64, 64},
		{NPUMEM_COMPACT, NPUMEM_INT8, NPUMEM_MODE_PLAIN, 128, 4},
		{NPUMEM_COMPACT, NPUMEM_INT16, NPUMEM_MODE_PLAIN, 128, 4},
		{NPUMEM_COMPACT, NPUMEM_FP32, NPUMEM_MODE_2IC, 128, 8},
		{NPUMEM_STRIDED, NPUMEM_INT8, NPUMEM_MODE_PLAIN, 128, 1},
		{NPUMEM_STRIDED, NPUMEM_INT16, NPUMEM_MODE_PLAIN, 128, 2},
		{NPUMEM_STRIDED, NPUMEM_INT8, NPUMEM_MODE_4N, 128, 4},
		{NPUMEM_STRIDED, NPUMEM_FP32, NPUMEM_MODE_2IC, 128, 8},
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct npumem_geometry geometry = bm1684;
		geometry.eu_bytes = cases[i].eu_bytes;
		struct npumem_spec spec = specs_tensor(cases[i].dtype, 1, 1, 1, 1);
		spec.layout = cases[i].layout;
		spec.mode = cases[i].mode;
		if (spec.layout == NPUMEM_MATRIX)
			spec.rows = spec.cols = 1;
		if (spec.layout == NPUMEM_STRIDED)
			spec.stride = (struct npumem_dims){1, 1, 1, 1};
		spec.address = 524288 + cases[i].align;
		ck_assert_int_eq(specs_resolve(&geometry, &spec).align_bytes, cases[i].align);
		if (cases[i].align > 1) {
			spec.address = 524288 + cases[i].align / 2;
			specs_refused(&geometry, &spec, "is not a multiple of");
		}
	}
}
