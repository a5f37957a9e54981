#include <check.h>
#include <stdlib.h>

#include <npumem/client.h>

#include "client/lib/spin.h"

/* Of many waits in vain few are spun for; one that pays is enough to go on. */
START_TEST(it_stops_where_it_does_not_pay)
{
	struct spin spin = {.most = 50000, .hope = 8};
	unsigned tried = 0;
	for (unsigned i = 0; i < 10000; i++)
		if (spin_begin(&spin)) {
			spin_end(&spin, false);
			tried++;
		}
	ck_assert_uint_lt(tried, 300);
	ck_assert_uint_gt(tried, 100);
	while (!spin_begin(&spin))
		;
	spin_end(&spin, true);
	for (unsigned i = 0; i < 8; i++) {
		ck_assert_int_eq(spin_begin(&spin), 50000);
		spin_end(&spin, false);
	}
	ck_assert_int_eq(spin_begin(&spin), 0);
}
END_TEST

/* On one core `most` is 0 whatever is asked for. */
static int64_t most_of(uint32_t us)
{
	struct spin spin;
	spin_init(&spin, us);
	return spin.most;
}

START_TEST(how_long)
{
	unsetenv("NPUMEM_SPIN_US");
	int64_t cores = most_of(0) ? 1 : 0;
	ck_assert_int_eq(most_of(0), cores * 50000);
	ck_assert_int_eq(most_of(7), cores * 7000);
	ck_assert_int_eq(most_of(5000), cores * 1000000);
	ck_assert_int_eq(most_of(NPUMEM_NO_SPIN), 0);
	setenv("NPUMEM_SPIN_US", "20", 1);
	ck_assert_int_eq(most_of(0), cores * 20000);
	ck_assert_int_eq(most_of(7), cores * 7000);
	setenv("NPUMEM_SPIN_US", "99999999999999999999", 1);
	ck_assert_int_eq(most_of(0), cores * 1000000);
	setenv("NPUMEM_SPIN_US", "0", 1);
	ck_assert_int_eq(most_of(0), 0);
	setenv("NPUMEM_SPIN_US", "many", 1);
	ck_assert_int_eq(most_of(0), 0);
	setenv("NPUMEM_SPIN_US", "", 1);
	ck_assert_int_eq(most_of(0), cores * 50000);
	unsetenv("NPUMEM_SPIN_US");
}
END_TEST

Suite *suite_spin(void)
{
	Suite *suite = suite_create("client/lib/spin");
	TCase *tcase = tcase_create("spin");
	tcase_add_test(tcase, it_stops_where_it_does_not_pay);
	tcase_add_test(tcase, how_long);
	suite_add_tcase(suite, tcase);
	return suite;
}
