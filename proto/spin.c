/* Where polling does not pay, its trials cost a 128th of the time; where it does, sleeping in the trials costs as
 * much. The core is not given away between looks: another process may keep it for milliseconds, and if that is the
 * other side, sleeping is quicker. */
#include "proto/spin.h"

#include <time.h>

enum {
	TRIAL_SHIFT = 19, /* half a millisecond */
	TRIALS = 128,	  /* in a round: one of each kind */
	WEIGHT = 8,	  /* of what is known beside the latest */
	LONG = 4, /* times most_ns: longer waits are all the same, as looking makes nothing of them shorter */
};

void spin_init(struct spin *spin, uint64_t most_ns)
{
	*spin = (struct spin){.most_ns = most_ns, .mean_ns = {most_ns, 0}};
}

/* A quarter at least is to be won, as a core is given for it. */
static bool pays(const struct spin *spin)
{
	return spin->mean_ns[true] + spin->mean_ns[true] / 3 < spin->mean_ns[false];
}

static void learn(struct spin *spin, uint64_t ns)
{
	uint64_t *mean = &spin->mean_ns[spin->looks], most = LONG * spin->most_ns;

	*mean = (*mean * (WEIGHT - 1) + (ns < most ? ns : most)) / WEIGHT;
}

bool spin_begin(struct spin *spin, uint64_t now_ns)
{
	uint64_t trial = (now_ns >> TRIAL_SHIFT) % TRIALS;

	if (!spin->most_ns)
		return false;
	if (spin->previous_ns)
		learn(spin, now_ns - spin->previous_ns);
	spin->previous_ns = now_ns;
	spin->looks = trial > 1 ? pays(spin) : !trial;
	return spin->looks;
}

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

bool spin_look(struct spin *spin, bool (*came)(void *ctx), void *ctx)
{
	uint64_t end;

	if (!spin->most_ns)
		return false;
	end = clock_ns();
	if (!spin_begin(spin, end))
		return false;
	end += spin->most_ns;
	do
		if (came(ctx))
			return true;
	while (clock_ns() < end);
	return false;
}
