#define _GNU_SOURCE /* sched_getaffinity */
#include "client/lib/connection/clock.h"

#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

#include <npumem/client.h>

enum {
	/* A core that has gone to sleep takes 20 to 50 us to wake up, much of what a transfer of megabytes or a
	 * kernel of a hundred million products takes; whether looking pays is learned. */
	SPIN_DEFAULT_US = 300,
	SPIN_MOST_US = 1000, /* longer is a sleep that costs a core */
};

static bool has_cores(void)
{
	cpu_set_t set;
	return !sched_getaffinity(0, sizeof(set), &set) && CPU_COUNT(&set) > 1;
}

uint64_t spin_most_ns(uint32_t us)
{
	const char *text = us ? NULL : secure_getenv("NPUMEM_SPIN_US");
	unsigned long given = us ? us : SPIN_DEFAULT_US;
	char *end;
	if (text && *text) {
		given = strtoul(text, &end, 10);
		given = *end ? 0 : given;
	}
	if (us == NPUMEM_NO_SPIN || !has_cores())
		return 0;
	return UINT64_C(1000) * (given < SPIN_MOST_US ? given : SPIN_MOST_US);
}
