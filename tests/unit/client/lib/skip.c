/* The linker lets the library ask the first for the time (--wrap), which asks the system. */
#include "tests/support/test.h"
#include "tests/unit/client/lib/skip.h"

#include <stdint.h>
#include <time.h>

int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __real_clock_gettime(clockid_t clock, struct timespec *now);

static int64_t skipped_ns;

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	int err = __real_clock_gettime(clock, now);
	int64_t ns = now->tv_nsec + skipped_ns;
	now->tv_sec += ns / 1000000000;
	now->tv_nsec = ns % 1000000000;
	return err;
}

void skip_ms(int ms)
{
	skipped_ns += (int64_t)ms * 1000000;
}

/* The clock runs on from where it has been moved to. */
TEST(time_passes)
{
	struct timespec before, after;
	clock_gettime(CLOCK_MONOTONIC, &before);
	for (unsigned i = 0; i < 5; i++)
		skip_ms(700);
	clock_gettime(CLOCK_MONOTONIC, &after);
	int64_t ns = (after.tv_sec - before.tv_sec) * INT64_C(1000000000) + after.tv_nsec - before.tv_nsec;
	ck_assert(ns >= INT64_C(3500000000) && after.tv_nsec < 1000000000);
}
