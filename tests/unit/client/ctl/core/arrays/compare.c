#include "client/ctl/core/arrays/values.h"

#include <math.h>

#include "tests/support/test.h"

TEST(the_first_that_differs)
{
	static const int8_t is[] = {1, 2, 3, 4, 5, 6}, expected[] = {1, 2, 3, 5, 5, 4};
	static const struct npumem_geometry geometry = {4, 1024, 8, 128};
	struct npumem_spec spec;
	struct npumem_place place;
	struct compare compare = {.n = 0};
	char text[200];
	compare_add(&compare, NPUMEM_FX8, is, expected, 2);
	compare_add(&compare, NPUMEM_FX8, is + 2, expected + 2, 4);
	ck_assert_uint_eq(compare.n, 6);
	ck_assert_uint_eq(compare.n_differ, 2);
	ck_assert_uint_eq(compare.first, 3);
	/* 10 log10(80 / 5) */
	ck_assert(fabs(compare_snr(&compare) - 12.0412) < 1e-4);
	npumem_spec_init(&spec);
	spec.dtype = NPUMEM_INT8;
	spec.shape = (struct npumem_dims){1, 2, 1, 3};
	spec.address = 3 * 1024 + 256;
	ck_assert_int_eq(npumem_place_resolve(&geometry, &spec, &place, NULL), 0);
	ck_assert_int_eq(npumem_place_at(&geometry, &place, spec.address, NULL), 0);
	/* Channel 1 is on the NPU after channel 0's, in the next block row where that is the first. */
	ck_assert_str_eq(
		compare_text(&compare, &geometry, &place, text, sizeof(text)),
		"[0,1,0,0] is 4, 5 is expected (NPU 0, offset 384); 2 of 6 differ, by up to 2; SNR 12.0 dB");
	spec = (struct npumem_spec){.dtype = NPUMEM_INT8,
				    .frac_bits = NPUMEM_ANY,
				    .layout = NPUMEM_MATRIX,
				    .rows = 2,
				    .cols = 3,
				    .w = 2,
				    .start_npu = 0,
				    .address = 0};
	ck_assert_int_eq(npumem_place_resolve(&geometry, &spec, &place, NULL), 0);
	ck_assert_int_eq(npumem_place_at(&geometry, &place, spec.address, NULL), 0);
	compare.first = 5;
	ck_assert_str_eq(compare_text(&compare, &geometry, &place, text, sizeof(text)),
			 "[1,2] is 4, 5 is expected (NPU 1, offset 128); 2 of 6 differ, by up to 2; SNR 12.0 dB");
}

TEST(nothing_differs)
{
	static const int16_t is[] = {-32768, 32767};
	struct compare compare = {.n = 0};
	compare_add(&compare, NPUMEM_INT16, is, is, 2);
	ck_assert_uint_eq(compare.n_differ, 0);
	ck_assert(isinf(compare_snr(&compare)));
}

TEST(real_numbers)
{
	const float is[] = {1.5F, NAN, INFINITY, -0.0F}, expected[] = {1.5F, NAN, INFINITY, 0.0F},
		    other[] = {0, 0, 0, 0};
	struct compare compare = {.n = 0};
	compare_add(&compare, NPUMEM_FP32, is, expected, 4);
	ck_assert_uint_eq(compare.n_differ, 0);
	compare_add(&compare, NPUMEM_FP32, is, other, 4);
	ck_assert_uint_eq(compare.n_differ, 3);
	ck_assert_uint_eq(compare.first, 4);
	/* No signal-to-noise ratio lets a NaN pass. */
	ck_assert(compare_snr(&compare) == -INFINITY);
}

TEST(every_type_of_integer)
{
	static const struct {
		int dtype;
		uint32_t is;
		double value;
	} rows[] = {
		{NPUMEM_INT8, 0xff, -1},	{NPUMEM_UINT8, 0xff, 255},
		{NPUMEM_INT16, 0xffff, -1},	{NPUMEM_UINT16, 0xffff, 65535},
		{NPUMEM_INT32, 0xffffffff, -1}, {NPUMEM_UINT32, 0xffffffff, 4294967295.0},
	};
	const uint32_t zero = 0;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct compare compare = {.n = 0};
		compare_add(&compare, rows[i].dtype, &rows[i].is, &zero, 1);
		ck_assert(compare.is == rows[i].value);
	}
}

/* What differs are the integers; signal and noise are those of the numbers before they were rounded. */
TEST(several_samples_of_reals)
{
	static const int8_t is[] = {16, 8, 0, 4}, expected[] = {16, 8, 1, 4};
	static const float reals[] = {1.0F, 0.5F, 0.05F, 0.25F};
	struct compare all = {.n = 0}, one = {.n = 0}, other = {.n = 0};
	compare_add_reals(&one, NPUMEM_FX8, 4, is, expected, reals, 2);
	ck_assert(!one.n_differ && isinf(compare_snr(&one)));
	compare_merge(&all, &one);
	compare_add_reals(&other, NPUMEM_FX8, 4, is + 2, expected + 2, reals + 2, 2);
	compare_merge(&all, &other);
	ck_assert_uint_eq(all.n, 4);
	ck_assert_uint_eq(all.n_differ, 1);
	ck_assert_uint_eq(all.first, 0); /* of its sample */
	ck_assert(all.is == 0 && all.expected == 1 && all.largest == 1);
	/* 10 log10((16^2 + 8^2 + 0.8^2 + 4^2) / 0.8^2) */
	ck_assert(fabs(compare_snr(&all) - 27.21) < 0.01);
}
