#include "tests/unit/include/formulas/specs.h"

TEST(strides)
{
	struct npumem_geometry geometry;
	npumem_geometry_default(&geometry);
	struct npumem_spec spec = specs_tensor(NPUMEM_INT8, 3, 70, 5, 7);
	spec.layout = NPUMEM_COMPACT;
	spec.start_npu = 60;
	struct npumem_place place = specs_resolve(&geometry, &spec);
	specs_stride_eq(&place.stride, 3 * 35, 35, 7, 1);
	ck_assert_int_eq(place.channels_per_npu, 3);
	ck_assert_int_eq(place.bytes_per_npu, 316); /* 315, and one byte of padding on each NPU */
	ck_assert_int_eq(place.blocks.padding, 64);
	ck_assert_int_eq(place.blocks.data, 3 * 70 * 35);
	ck_assert_int_eq(place.blocks.empty, 3 * (64 * 3 - 70) * 35);
}

TEST(packed)
{
	struct npumem_geometry geometry;
	npumem_geometry_default(&geometry);
	struct npumem_spec spec = specs_tensor(NPUMEM_UINT16, 5, 2, 3, 3);
	spec.layout = NPUMEM_COMPACT;
	spec.mode = NPUMEM_MODE_2N;
	struct npumem_place place = specs_resolve(&geometry, &spec);
	specs_stride_eq(&place.stride, 9, 9, 3, 1);
	ck_assert_int_eq(place.words_n, 3);
	ck_assert_int_eq(place.bytes_per_npu, 3 * 9 * 4);
	ck_assert_int_eq(place.blocks.dummy, 2 * 9 * 2);
}
