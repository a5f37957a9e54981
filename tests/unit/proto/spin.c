#include "proto/spin.h"

#include <check.h>

/* How many of n waits were looked for. */
static unsigned looks(struct spin *spin, unsigned n, bool came, uint64_t away_ns)
{
	unsigned tried = 0;

	for (unsigned i = 0; i < n; i++)
		if (spin_begin(spin)) {
			spin_end(spin, came, away_ns);
			tried++;
		}
	return tried;
}

START_TEST(it_goes_on_where_it_pays)
{
	struct spin spin;

	spin_init(&spin, 50000);
	ck_assert_uint_eq(looks(&spin, 1000, true, 500), 1000);
	/* One in vain now and then does no harm. */
	for (unsigned i = 0; i < 100; i++) {
		ck_assert_uint_eq(looks(&spin, 1, false, 500), 1);
		ck_assert_uint_eq(looks(&spin, 9, true, 500), 9);
	}
}
END_TEST

START_TEST(it_stops_where_it_does_not_pay)
{
	struct spin spin;

	spin_init(&spin, 50000);
	ck_assert_uint_lt(looks(&spin, 10000, false, 500), 20);
	/* And ever more, the longer that lasts. */
	ck_assert_uint_lt(looks(&spin, 100000, false, 500), 8);
	while (!spin_begin(&spin))
		;
	/* Until it pays for a while. */
	spin_end(&spin, true, 500);
	ck_assert_uint_eq(looks(&spin, 1000, true, 500), 1000);
	ck_assert_uint_eq(looks(&spin, 4, false, 500), 4);
	ck_assert_uint_eq(looks(&spin, 64, false, 500), 0);
	ck_assert_uint_eq(looks(&spin, 1, false, 500), 1);
}
END_TEST

START_TEST(a_core_that_is_not_alone_is_given_up)
{
	struct spin spin;

	/* The other side had it, and it came. */
	spin_init(&spin, 50000);
	ck_assert_uint_lt(looks(&spin, 10000, true, 6000), 20);
	/* Somebody had it for long. */
	spin_init(&spin, 50000);
	ck_assert_uint_eq(looks(&spin, 65, true, 3000000), 1);
	ck_assert_uint_eq(looks(&spin, 129, false, 3000000), 1);
}
END_TEST

static bool third_time(void *ctx)
{
	return ++*(unsigned *)ctx == 3;
}

static bool never(void *ctx)
{
	++*(unsigned *)ctx;
	return false;
}

START_TEST(it_asks_until_it_has_come)
{
	unsigned n = 0;
	struct spin spin;

	spin_init(&spin, 0);
	ck_assert(!spin_look(&spin, third_time, &n));
	ck_assert_uint_eq(n, 0);
	/* A busy machine may have the core meanwhile: then it is not asked again, and rests. */
	for (unsigned tries = 0; n != 3 && tries < 2000; tries++) {
		spin_init(&spin, UINT64_C(1) << 40);
		n = 0;
		ck_assert(spin_look(&spin, third_time, &n) || spin.rests);
	}
	ck_assert_uint_eq(n, 3);
	n = 0;
	spin_init(&spin, 1);
	ck_assert(!spin_look(&spin, never, &n));
	ck_assert_uint_eq(n, 1);
}
END_TEST

Suite *suite_spin(void)
{
	Suite *suite = suite_create("proto/spin");
	TCase *tcase = tcase_create("all");

	tcase_add_test(tcase, it_goes_on_where_it_pays);
	tcase_add_test(tcase, it_stops_where_it_does_not_pay);
	tcase_add_test(tcase, a_core_that_is_not_alone_is_given_up);
	tcase_add_test(tcase, it_asks_until_it_has_come);
	suite_add_tcase(suite, tcase);
	return suite;
}
