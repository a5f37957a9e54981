#include "tests/unit/include/formulas/specs.h"

/* "ceil(H * W / 32) * 32 if the data type is 32-bit, / 64 if 16-bit, / 128 if 8-bit", at the seed's 128 bytes. */
TEST(c_stride)
{
	struct npumem_geometry geometry;
	npumem_geometry_default(&geometry);
	geometry.npu_bytes = 1 << 20;
	static const int64_t sides[] = {1, 2, 5, 8, 11, 16, 31, 32, 33, 64, 127, 128, 129};
	for (int dtype = NPUMEM_INT8; dtype <= NPUMEM_FX16; dtype++) {
		int64_t unit = 128 / npumem_dtype_bytes(dtype);
		for (unsigned h = 0; h < 13; h++) {
			for (unsigned w = 0; w < 13; w++) {
				struct npumem_spec spec = specs_tensor(dtype, 3, 70, sides[h], sides[w]);
				spec.start_npu = 60;
				struct npumem_place place = specs_resolve(&geometry, &spec);
				int64_t stride = (sides[h] * sides[w] + unit - 1) / unit * unit;
				specs_stride_eq(&place.stride, 3 * stride, stride, sides[w], 1);
				ck_assert_int_eq(place.bytes_per_npu, 3 * 3 * stride * npumem_dtype_bytes(dtype));
				ck_assert_int_eq(place.align_bytes, 128);
			}
		}
	}
}

/* A chip preset aligns to its EU bytes; a word wider than those is not split. */
TEST(eu_bytes)
{
	struct npumem_geometry geometry;
	ck_assert(npumem_geometry_chip("sg2380", &geometry));
	struct npumem_spec spec = specs_tensor(NPUMEM_INT8, 1, 2, 3, 7);
	struct npumem_place place = specs_resolve(&geometry, &spec);
	ck_assert_int_eq(place.stride.c, 32);
	ck_assert_int_eq(place.align_bytes, 16);
	geometry.eu_bytes = 4;
	spec = specs_tensor(NPUMEM_FP32, 2, 2, 3, 7);
	spec.mode = NPUMEM_MODE_2IC;
	place = specs_resolve(&geometry, &spec);
	ck_assert_int_eq(place.stride.c, 21);
	ck_assert_int_eq(place.align_bytes, 8);
}
