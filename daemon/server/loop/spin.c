/* A look is a turn of the loop that does not wait. */
#include "daemon/server/loop/spin.h"

#include "proto/spin.h"

struct looker {
	uv_loop_t *loop;
	const struct turns *turns;
};

static bool has_run(void *ctx)
{
	const struct looker *looker = ctx;
	unsigned long n_before = looker->turns->n_run;

	uv_run(looker->loop, UV_RUN_NOWAIT);
	return looker->turns->n_run != n_before;
}

void spin_run(uv_loop_t *loop, struct turns *turns, unsigned us)
{
	struct looker looker = {loop, turns};
	struct spin spin;
	uint64_t before_ns;
	bool goes_on;

	spin_init(&spin, uv_available_parallelism() > 1 ? (uint64_t)us * 1000 : 0);
	while (uv_run(loop, spin.most_ns ? UV_RUN_ONCE : UV_RUN_DEFAULT))
		do {
			before_ns = uv_hrtime();
			goes_on = spin_look(&spin, has_run, &looker);
			turns->spun_ns += uv_hrtime() - before_ns;
		} while (goes_on);
}
