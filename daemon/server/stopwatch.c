/* libuv calls what is ready from within its wait, so that a check handle would come too late to see the beginning
 * of a turn: it is what of the time between two waits was not spent waiting, which libuv counts. The thread's own
 * time is asked for as well, as a loop that the machine gave no processor is none that blocks. */
#include "daemon/server/stopwatch.h"

#include <time.h>

static uint64_t cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void look(struct stopwatch *stopwatch)
{
	stopwatch->at_ns = uv_hrtime();
	stopwatch->cpu_ns = cpu_ns();
	stopwatch->idle_ns = uv_metrics_idle_time(stopwatch->prepare.loop);
}

static void on_prepare(uv_prepare_t *prepare)
{
	struct stopwatch *stopwatch = prepare->data, before = *stopwatch;
	uint64_t passed, waited;

	look(stopwatch);
	passed = stopwatch->at_ns - before.at_ns;
	waited = stopwatch->idle_ns - before.idle_ns;
	metrics_turn(stopwatch->metrics, passed > waited ? passed - waited : 0, stopwatch->cpu_ns - before.cpu_ns);
}

void stopwatch_open(struct stopwatch *stopwatch, uv_loop_t *loop, struct metrics *metrics)
{
	stopwatch->metrics = metrics;
	stopwatch->prepare.data = stopwatch;
	stopwatch->is_open = true;
	/* Neither can fail. */
	uv_prepare_init(loop, &stopwatch->prepare);
	uv_prepare_start(&stopwatch->prepare, on_prepare);
	uv_unref((uv_handle_t *)&stopwatch->prepare);
	look(stopwatch);
}

void stopwatch_close(struct stopwatch *stopwatch)
{
	if (stopwatch->is_open)
		uv_close((uv_handle_t *)&stopwatch->prepare, NULL);
	stopwatch->is_open = false;
}
