/* When to spin. Invariant: of many waits in a row that spinning does not shorten, few are spun for. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "client/lib/spin.h"

#include <sched.h>
#include <stdlib.h>

#include <npumem/client.h>

enum {
	SPIN_DEFAULT_US = 50, /* crossing cores through the scheduler costs two thirds of this */
	SPIN_MOST_US = 1000,  /* longer is a sleep that costs a core */
	SPIN_HOPE = 8,
	SPIN_REST = 64,
};

static bool has_cores(void)
{
	cpu_set_t set;
	return !sched_getaffinity(0, sizeof(set), &set) && CPU_COUNT(&set) > 1;
}

void spin_init(struct spin *spin, uint32_t us)
{
	const char *text = us ? NULL : secure_getenv("NPUMEM_SPIN_US");
	char *end;
	if (text && *text) {
		unsigned long given = strtoul(text, &end, 10);
		us = *end || !given ? NPUMEM_NO_SPIN : given > SPIN_MOST_US ? SPIN_MOST_US : (uint32_t)given;
	}
	if (us == NPUMEM_NO_SPIN || !has_cores())
		us = 0;
	else if (!us)
		us = SPIN_DEFAULT_US;
	else if (us > SPIN_MOST_US)
		us = SPIN_MOST_US;
	*spin = (struct spin){.most = (int64_t)us * 1000, .hope = SPIN_HOPE};
}

int64_t spin_begin(struct spin *spin)
{
	if (!spin->most)
		return 0;
	if (!spin->hope) {
		if (--spin->rest)
			return 0;
		spin->hope = 1;
	}
	return spin->most;
}

void spin_end(struct spin *spin, bool paid)
{
	if (paid)
		spin->hope = SPIN_HOPE;
	else if (!--spin->hope)
		spin->rest = SPIN_REST;
}
