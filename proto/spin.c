/* A core that comes back late has been somebody else's: where that was the other side, which came to send, it
 * would have done so as soon for a sleeper, and where it was a third party that will go on for milliseconds, each
 * look costs as many. Invariant: of many waits that looking does not shorten few are looked for, and ever fewer.
 */
#include "proto/spin.h"

#include <sched.h>
#include <time.h>

enum {
	CREDIT_MAX = 8,
	MISS_COST = 2,
	RESTS_LEAST = 64,
	RESTS_MOST = 1 << 16,
	SHARED_NS = 3000, /* away for longer: a process of some microseconds was there */
	LOST_NS = 30000,  /* one that does not give way */
};

void spin_init(struct spin *spin, uint64_t most_ns)
{
	*spin = (struct spin){.most_ns = most_ns, .credit = CREDIT_MAX, .next_rests = RESTS_LEAST};
}

bool spin_begin(struct spin *spin)
{
	if (!spin->most_ns)
		return false;
	if (!spin->rests)
		return true;
	spin->rests--;
	return false;
}

void spin_end(struct spin *spin, bool came, uint64_t away_ns)
{
	if (came && away_ns < SHARED_NS) {
		if (spin->credit < CREDIT_MAX && ++spin->credit == CREDIT_MAX)
			spin->next_rests = RESTS_LEAST;
		return;
	}
	spin->credit = away_ns > LOST_NS ? 0 : spin->credit - MISS_COST;
	if (spin->credit > 0)
		return;
	spin->credit = MISS_COST;
	spin->rests = spin->next_rests;
	if (spin->next_rests < RESTS_MOST)
		spin->next_rests *= 2;
}

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

bool spin_look(struct spin *spin, bool (*came)(void *ctx), void *ctx)
{
	uint64_t before, now, end, away = 0;
	bool has_come;

	if (!spin_begin(spin))
		return false;
	now = clock_ns();
	end = now + spin->most_ns;
	do {
		before = now;
		sched_yield();
		now = clock_ns();
		away = now - before > away ? now - before : away;
		has_come = came(ctx);
		now = clock_ns();
	} while (!has_come && now < end && away <= LOST_NS);
	spin_end(spin, has_come, away);
	return has_come;
}
