/* Whether it pays is learned: what comes while it is asked for adds to a credit, what does not takes from it, and
 * a yield that takes long says that somebody else had the processor. Without credit it rests for some sleeps. */
#include "daemon/server/spin.h"

#include <sched.h>
#include <stdbool.h>

enum {
	CREDIT_MAX = 8,
	MISS_COST = 2,
	RESTS_LEAST = 64, /* sleeps without a try, after the credit is used up */
	RESTS_MOST = 1 << 16,
	YIELD_NS = 30000, /* a longer one was another's time */
};

struct spin {
	uint64_t most_ns;
	int credit;
	unsigned n_rests, next_rests;
};

enum result { CAME, NOTHING, BUSY };

static enum result wait_awake(const struct spin *spin, uv_loop_t *loop, struct turns *turns)
{
	uint64_t now_ns = uv_hrtime(), end_ns = now_ns + spin->most_ns, before_ns;
	unsigned long n_before;

	for (;;) {
		n_before = turns->n_run;
		uv_run(loop, UV_RUN_NOWAIT);
		before_ns = uv_hrtime();
		if (turns->n_run != n_before)
			return CAME;
		if (before_ns >= end_ns)
			return NOTHING;
		sched_yield();
		now_ns = uv_hrtime();
		if (now_ns - before_ns > YIELD_NS)
			return BUSY;
	}
}

static void learn(struct spin *spin, enum result result)
{
	if (result == CAME) {
		if (spin->credit < CREDIT_MAX && ++spin->credit == CREDIT_MAX)
			spin->next_rests = RESTS_LEAST;
		return;
	}
	spin->credit = result == BUSY ? 0 : spin->credit - MISS_COST;
	if (spin->credit > 0)
		return;
	spin->credit = MISS_COST;
	spin->n_rests = spin->next_rests;
	if (spin->next_rests < RESTS_MOST)
		spin->next_rests *= 2;
}

void spin_run(uv_loop_t *loop, struct turns *turns, unsigned us)
{
	struct spin spin = {.most_ns = (uint64_t)us * 1000, .credit = CREDIT_MAX, .next_rests = RESTS_LEAST};
	enum result result;
	uint64_t before_ns;

	if (!us || uv_available_parallelism() < 2) {
		uv_run(loop, UV_RUN_DEFAULT);
		return;
	}
	while (uv_run(loop, UV_RUN_ONCE)) {
		if (spin.n_rests) {
			spin.n_rests--;
			continue;
		}
		do {
			before_ns = uv_hrtime();
			result = wait_awake(&spin, loop, turns);
			turns->spun_ns += uv_hrtime() - before_ns;
			learn(&spin, result);
		} while (result == CAME && !spin.n_rests);
	}
}
