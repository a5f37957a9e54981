#include <stdlib.h>

#include <npumem/client.h>

#include "client/lib/connection/clock.h"
#include "tests/support/test.h"

/* On one core 0, whatever is asked for. */
TEST(how_long)
{
	unsetenv("NPUMEM_SPIN_US");
	uint64_t cores = spin_most_ns(0) ? 1 : 0;
	ck_assert_uint_eq(spin_most_ns(0), cores * 300000);
	ck_assert_uint_eq(spin_most_ns(7), cores * 7000);
	ck_assert_uint_eq(spin_most_ns(5000), cores * 1000000);
	ck_assert_uint_eq(spin_most_ns(NPUMEM_NO_SPIN), 0);
	setenv("NPUMEM_SPIN_US", "20", 1);
	ck_assert_uint_eq(spin_most_ns(0), cores * 20000);
	ck_assert_uint_eq(spin_most_ns(7), cores * 7000);
	setenv("NPUMEM_SPIN_US", "99999999999999999999", 1);
	ck_assert_uint_eq(spin_most_ns(0), cores * 1000000);
	setenv("NPUMEM_SPIN_US", "0", 1);
	ck_assert_uint_eq(spin_most_ns(0), 0);
	setenv("NPUMEM_SPIN_US", "many", 1);
	ck_assert_uint_eq(spin_most_ns(0), 0);
	setenv("NPUMEM_SPIN_US", "", 1);
	ck_assert_uint_eq(spin_most_ns(0), cores * 300000);
	unsetenv("NPUMEM_SPIN_US");
}
