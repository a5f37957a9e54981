/* A poll is a turn of the loop that does not wait. */
#include "daemon/server/loop/spin.h"

#include "proto/spin.h"

/* Whether the loop goes on. */
static bool poll_loop(uv_loop_t *loop, struct turns *turns, uint64_t most_ns)
{
	uint64_t from = uv_hrtime(), now = from;
	bool is_alive = true;

	while (is_alive && !turns->woken_ns && now - from < most_ns) {
		is_alive = uv_run(loop, UV_RUN_NOWAIT);
		now = uv_hrtime();
	}
	turns->spun_ns += now - from;
	return is_alive;
}

void spin_run(uv_loop_t *loop, struct turns *turns, unsigned us)
{
	struct spin spin;
	bool is_alive = true;

	if (!us || uv_available_parallelism() < 2) {
		uv_run(loop, UV_RUN_DEFAULT);
		return;
	}
	spin_init(&spin, (uint64_t)us * 1000);
	while (is_alive) {
		if (spin_begin(&spin, uv_hrtime())) {
			/* One turn without waiting. */
			is_alive = uv_run(loop, UV_RUN_NOWAIT) && poll_loop(loop, turns, spin.most_ns);
			if (!is_alive || turns->woken_ns)
				continue;
		}
		is_alive = uv_run(loop, UV_RUN_ONCE);
	}
}
