#include "proto/convert.h"

#include <string.h>

#include "tests/support/test.h"

TEST(nothing_becomes_the_defaults)
{
	struct npumem_spec spec, expected;
	struct npumem_dims dims = {1, 2, 3, 4};
	struct npumem_place place;
	memset(&spec, 0x55, sizeof(spec));
	convert_spec_from(NULL, &spec);
	npumem_spec_init(&expected);
	ck_assert_int_eq(spec.dtype, expected.dtype);
	ck_assert_int_eq(spec.frac_bits, NPUMEM_ANY);
	ck_assert_int_eq(spec.start_npu, NPUMEM_ANY);
	ck_assert_int_eq(spec.address, NPUMEM_ANY);
	convert_dims_from(NULL, &dims);
	ck_assert(!dims.n && !dims.c && !dims.h && !dims.w);
	convert_place_from(NULL, &place);
	ck_assert_int_eq(place.address, NPUMEM_ANY);
	ck_assert_int_eq(place.frac_bits, NPUMEM_ANY);
}

/* Packs and unpacks on the way, so that the oneofs really travel. */
static void spec_travels(const struct npumem_spec *spec)
{
	struct convert_spec to;
	struct npumem_spec back;
	uint8_t bytes[512];
	Npumem__V1__Spec *message;
	convert_spec_to(spec, &to);
	ck_assert_uint_le(npumem__v1__spec__get_packed_size(&to.message), sizeof(bytes));
	message = npumem__v1__spec__unpack(NULL, npumem__v1__spec__pack(&to.message, bytes), bytes);
	ck_assert_ptr_nonnull(message);
	convert_spec_from(message, &back);
	npumem__v1__spec__free_unpacked(message, NULL);
	ck_assert_int_eq(back.dtype, spec->dtype);
	ck_assert_int_eq(back.frac_bits, spec->frac_bits);
	ck_assert_int_eq(back.layout, spec->layout);
	ck_assert_int_eq(back.mode, spec->mode);
	ck_assert_mem_eq(&back.shape, &spec->shape, sizeof(spec->shape));
	ck_assert_mem_eq(&back.stride, &spec->stride, sizeof(spec->stride));
	ck_assert_int_eq(back.rows, spec->rows);
	ck_assert_int_eq(back.cols, spec->cols);
	ck_assert_int_eq(back.w, spec->w);
	ck_assert_int_eq(back.start_npu, spec->start_npu);
	ck_assert_int_eq(back.address, spec->address);
}

TEST(a_spec_travels_whole)
{
	struct npumem_spec spec;
	npumem_spec_init(&spec);
	spec_travels(&spec);
	spec.dtype = NPUMEM_FX8;
	spec.frac_bits = 0; /* given, though 0 */
	spec.start_npu = 0;
	spec.address = 0;
	spec_travels(&spec);
	spec = (struct npumem_spec){
		.dtype = NPUMEM_FX16,
		.frac_bits = 127,
		.layout = NPUMEM_STRIDED,
		.mode = NPUMEM_MODE_2N,
		.shape = {1, INT64_MAX, 3, -4},
		.stride = {5, 6, INT64_MIN, 8},
		.rows = 9,
		.cols = 10,
		.w = 11,
		.start_npu = 12,
		.address = INT64_MAX,
	};
	spec_travels(&spec);
}

TEST(a_place_travels_whole)
{
	struct npumem_place place = {
		.dtype = NPUMEM_INT8,
		.frac_bits = NPUMEM_ANY,
		.layout = NPUMEM_MATRIX,
		.mode = NPUMEM_MODE_4N,
		.shape = {9, 2, 1, 4},
		.rows = 9,
		.cols = 7,
		.w = 4,
		.last_w = 3,
		.lanes = 4,
		.word_bytes = 4,
		.words_n = 3,
		.stride = {11, 12, 13, 14},
		.start_npu = 15,
		.channels_per_npu = 16,
		.bytes_per_npu = 17,
		.align_bytes = 128,
		.address = NPUMEM_ANY,
		.npu = NPUMEM_ANY,
		.offset = NPUMEM_ANY,
		.blocks = {18, 19, 20, 21},
	};
	for (unsigned placed = 0; placed < 2; placed++) {
		struct convert_place to;
		struct npumem_place back;
		uint8_t bytes[512], again[512];
		Npumem__V1__Place *message;
		size_t n;
		if (placed) {
			place.dtype = NPUMEM_FX8;
			place.frac_bits = 0;
			place.address = 0;
			place.npu = 0;
			place.offset = 0;
		}
		convert_place_to(&place, &to);
		n = npumem__v1__place__pack(&to.message, bytes);
		message = npumem__v1__place__unpack(NULL, n, bytes);
		ck_assert_ptr_nonnull(message);
		convert_place_from(message, &back);
		npumem__v1__place__free_unpacked(message, NULL);
		ck_assert_int_eq(back.lanes, place.lanes);
		ck_assert_int_eq(back.words_n, place.words_n);
		ck_assert_int_eq(back.word_bytes, place.lanes * 1);
		convert_place_to(&back, &to);
		ck_assert_uint_eq(npumem__v1__place__pack(&to.message, again), n);
		ck_assert_mem_eq(again, bytes, n);
	}
}
