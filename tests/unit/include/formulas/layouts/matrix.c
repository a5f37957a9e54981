#include "tests/unit/include/formulas/specs.h"

TEST(refused)
{
	struct npumem_spec spec = specs_matrix(NPUMEM_FP32, 0, 40, 0);
	specs_refused(&specs_seed, &spec, "rows is 0, which is not in 1..2147483647");
	spec = specs_matrix(NPUMEM_FP32, 2, INT64_C(1) << 31, 0);
	specs_refused(&specs_seed, &spec, "cols is 2147483648, which is not in 1..2147483647");
	spec = specs_matrix(NPUMEM_FP32, 2, 40, 41);
	specs_refused(&specs_seed, &spec, "w is 41, which is not in 1..40, the columns");
	spec = specs_matrix(NPUMEM_FP32, 2, 40, -1);
	specs_refused(&specs_seed, &spec, "w is -1, which is not in 1..40");
	/* With W left open, the refusal is that of the best width. */
	spec = specs_matrix(NPUMEM_FP32, 9, 40, 0);
	specs_refused(&specs_seed, &spec, "needs 1152 bytes on each NPU; an NPU has 1024");
}

/* Column c of a row is channel c / W, element c % W; the shape that was given does not count. */
TEST(view_as_tensor)
{
	const struct npumem_geometry geometry = {4, 2048, 1, 128};
	struct npumem_spec spec = specs_matrix(NPUMEM_INT16, 3, 29, 4);
	spec.shape = (struct npumem_dims){7, 7, 7, 7};
	spec.start_npu = 1;
	struct npumem_place place = specs_resolve(&geometry, &spec);
	ck_assert_int_eq(place.rows, 3);
	ck_assert_int_eq(place.cols, 29);
	ck_assert_int_eq(place.w, 4);
	ck_assert_int_eq(place.shape.n, 3);
	ck_assert_int_eq(place.shape.c, 8);
	ck_assert_int_eq(place.last_w, 1);
	ck_assert_int_eq(place.channels_per_npu, 3);
	specs_stride_eq(&place.stride, 3 * 64, 64, 4, 1);
	ck_assert_int_eq(npumem_place_elements(&place), 87);
	int64_t npu, offset;
	npumem_place_locate(&geometry, &place, 2, 28 / 4, 0, 28 % 4, &npu, &offset);
	ck_assert_int_eq(npu, 0);
	ck_assert_int_eq(offset, (2 * 192 + 2 * 64) * 2);
	ck_assert_int_eq(place.blocks.data, 87 * 2);
	ck_assert_int_eq(place.blocks.empty, 3 * (3 * 4 - 8) * 128);
}

/* In a packed mode it is the rows that are packed. */
TEST(packed_rows)
{
	struct npumem_spec spec = specs_matrix(NPUMEM_INT8, 6, 10, 5);
	spec.mode = NPUMEM_MODE_4N;
	struct npumem_place place = specs_resolve(&specs_seed, &spec);
	ck_assert_int_eq(place.words_n, 2);
	specs_stride_eq(&place.stride, 32, 32, 5, 1);
	ck_assert_int_eq(place.blocks.data, 60);
	ck_assert_int_eq(place.blocks.dummy, 2 * 10);
	int64_t npu, offset;
	npumem_place_locate(&specs_seed, &place, 5, 1, 0, 3, &npu, &offset);
	ck_assert_int_eq(npu, 1);
	ck_assert_int_eq(offset, (32 + 3) * 4 + 1);
}
