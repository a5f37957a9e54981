/* The thread's own time is asked for as well, as a loop that the machine gave no processor is none that blocks;
 * but that is a system call, so it is asked for when a turn was long, or many short ones were. What a long turn
 * took is then known but for what was spent between the turns since. */
#include "daemon/server/loop/stopwatch.h"

#include <time.h>

static uint64_t cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

enum { SHORT_NS = 50000, SHORT_SUM_NS = 200000 };

void stopwatch_refresh(struct stopwatch *stopwatch)
{
	stopwatch->cpu_ns = cpu_ns();
	stopwatch->passed_ns = stopwatch->turns->spun_ns = 0;
}

static uint64_t cpu_of(struct stopwatch *stopwatch, uint64_t ns)
{
	uint64_t before = stopwatch->cpu_ns + stopwatch->passed_ns + stopwatch->turns->spun_ns, now;

	stopwatch->passed_ns += ns;
	if (ns < SHORT_NS && stopwatch->passed_ns < SHORT_SUM_NS)
		return ns;
	stopwatch_refresh(stopwatch);
	now = stopwatch->cpu_ns > before ? stopwatch->cpu_ns - before : 0;
	return now < ns ? now : ns;
}

static void on_prepare(uv_prepare_t *prepare)
{
	struct stopwatch *stopwatch = prepare->data;
	uint64_t ns;

	if (!stopwatch->turns->latest_ns)
		return;
	ns = uv_hrtime() - stopwatch->turns->latest_ns;
	metrics_turn(stopwatch->metrics, ns, cpu_of(stopwatch, ns));
}

void stopwatch_open(struct stopwatch *stopwatch, struct turns *turns, uv_loop_t *loop, struct metrics *metrics)
{
	stopwatch->turns = turns;
	stopwatch->metrics = metrics;
	stopwatch->prepare.data = stopwatch;
	stopwatch->is_open = true;
	/* Neither can fail. */
	uv_prepare_init(loop, &stopwatch->prepare);
	uv_prepare_start(&stopwatch->prepare, on_prepare);
	uv_unref((uv_handle_t *)&stopwatch->prepare);
	stopwatch_refresh(stopwatch);
}

void stopwatch_close(struct stopwatch *stopwatch)
{
	if (stopwatch->is_open)
		uv_close((uv_handle_t *)&stopwatch->prepare, NULL);
	stopwatch->is_open = false;
}
