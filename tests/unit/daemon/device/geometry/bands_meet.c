/* Against meet_first, which looks at every byte, for every pair of kinds. */
#include "daemon/device/geometry/bands_meet.h"

#include "daemon/device/geometry/meet.h"
#include "tests/unit/daemon/device/places.h"

START_TEST(as_meet_first)
{
	uint64_t random = 3;
	unsigned n_met = 0, n_apart = 0;
	for (int i = 0; i < 4000; i++) {
		static const int64_t n_npus[] = {1, 2, 4, 7, 70};
		struct npumem_geometry geometry = {n_npus[i % 5], 1 << 14, 8, 128};
		struct npumem_place a, b;
		struct meet_range range;
		unsigned a_kinds = (unsigned)oracle_between(&random, 1, 15);
		unsigned b_kinds = (unsigned)oracle_between(&random, 1, 15);
		if (!places_random(&random, &geometry, &a) || !places_random(&random, &geometry, &b))
			continue;
		a.offset = oracle_between(&random, 0, 40) * 8;
		b.offset = oracle_between(&random, 0, 40) * 8;
		bool expected = meet_first(&geometry, &a, a_kinds, &b, b_kinds, &range);
		if (bands_meet(&geometry, &a, a_kinds, &b, b_kinds) != expected)
			ck_abort_msg("%d: layouts %d and %d, kinds %u and %u: not %d", i, a.layout, b.layout,
				     a_kinds, b_kinds, expected);
		n_met += expected;
		n_apart += !expected;
	}
	ck_assert_uint_ge(n_met, 500);
	ck_assert_uint_ge(n_apart, 500);
}
END_TEST

/* So many words that not all of them are looked up. */
START_TEST(many_words)
{
	struct npumem_geometry geometry = {2, 1 << 19, 8, 128};
	for (int64_t h = 1; h <= 2; h++) {
		struct npumem_spec spec;
		struct npumem_place a, b;
		npumem_spec_init(&spec);
		spec.dtype = NPUMEM_INT8;
		spec.layout = NPUMEM_STRIDED;
		spec.shape = (struct npumem_dims){1, 1, 1, 130000};
		spec.stride = (struct npumem_dims){1, 1, 1, 2};
		ck_assert_int_eq(npumem_place_resolve(&geometry, &spec, &a, NULL), 0);
		/* On the other NPU at odd offsets, and with a second row at even ones. */
		spec.start_npu = 1;
		spec.shape = (struct npumem_dims){1, 1, h, 66000};
		spec.stride.h = 132001;
		ck_assert_int_eq(npumem_place_resolve(&geometry, &spec, &b, NULL), 0);
		a.offset = 0;
		b.offset = 1;
		ck_assert_int_eq(bands_meet(&geometry, &a, MEET_DATA, &b, NPUMEM_BYTE_EMPTY), h == 2);
		ck_assert_int_eq(bands_meet(&geometry, &b, NPUMEM_BYTE_EMPTY, &a, MEET_DATA), h == 2);
		ck_assert(!bands_meet(&geometry, &a, MEET_DATA, &b, MEET_DATA));
	}
}
END_TEST

Suite *suite_bands_meet(void)
{
	Suite *suite = suite_create("device/bands_meet");
	TCase *tcase = tcase_create("bands_meet");
	tcase_add_test(tcase, as_meet_first);
	tcase_add_test(tcase, many_words);
	suite_add_tcase(suite, tcase);
	return suite;
}
