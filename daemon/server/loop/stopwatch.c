/* The thread's processor time is read as well, as a loop without a processor does not block. Time that is neither
 * processor time nor delay (ready without a processor) is sleep: the loop has waited. The whole delay since the
 * last reading is subtracted, so that a sleep is reported too short rather than too long. A reading is a system
 * call, so it comes only after a long turn or many short ones. The times of a long turn then include what was
 * spent between the turns since the last reading. */
#include "daemon/server/loop/stopwatch.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static uint64_t cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* From Linux, if schedstats are on: time on a processor, time ready without one, number of times. */
static uint64_t delay_ns(const struct stopwatch *stopwatch)
{
	char text[80];
	uint64_t delay = 0;
	ssize_t n = stopwatch->delay_fd < 0 ? 0 : pread(stopwatch->delay_fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = 0;
	return sscanf(text, "%*u %" SCNu64, &delay) == 1 ? delay : 0;
}

enum { SHORT_NS = 50000, SHORT_SUM_NS = 200000, SLEEP_NS = 1000000 };

static void refresh_cpu(struct stopwatch *stopwatch)
{
	stopwatch->cpu_ns = cpu_ns();
	stopwatch->passed_ns = stopwatch->turns->spun_ns = 0;
}

void stopwatch_refresh(struct stopwatch *stopwatch)
{
	refresh_cpu(stopwatch);
	stopwatch->delay_ns = delay_ns(stopwatch);
}

static uint64_t cpu_of(struct stopwatch *stopwatch, uint64_t ns)
{
	uint64_t before = stopwatch->cpu_ns + stopwatch->passed_ns + stopwatch->turns->spun_ns, now;

	stopwatch->passed_ns += ns;
	if (ns < SHORT_NS && stopwatch->passed_ns < SHORT_SUM_NS)
		return ns;
	refresh_cpu(stopwatch);
	now = stopwatch->cpu_ns > before ? stopwatch->cpu_ns - before : 0;
	return now < ns ? now : ns;
}

static uint64_t wait_of(struct stopwatch *stopwatch, uint64_t ns, uint64_t cpu_ns)
{
	uint64_t wait_ns = ns - cpu_ns, before = stopwatch->delay_ns;

	if (wait_ns < SLEEP_NS)
		return wait_ns;
	stopwatch->delay_ns = delay_ns(stopwatch);
	before = stopwatch->delay_ns - before;
	return wait_ns > before ? wait_ns - before : 0;
}

static void on_prepare(uv_prepare_t *prepare)
{
	struct stopwatch *stopwatch = prepare->data;
	uint64_t ns, cpu_ns;

	if (!stopwatch->turns->latest_ns)
		return;
	ns = uv_hrtime() - stopwatch->turns->latest_ns;
	cpu_ns = cpu_of(stopwatch, ns);
	metrics_turn(stopwatch->metrics, ns, cpu_ns, wait_of(stopwatch, ns, cpu_ns));
}

void stopwatch_open(struct stopwatch *stopwatch, struct turns *turns, uv_loop_t *loop, struct metrics *metrics)
{
	stopwatch->turns = turns;
	stopwatch->metrics = metrics;
	stopwatch->prepare.data = stopwatch;
	stopwatch->is_open = true;
	stopwatch->delay_fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
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
	if (stopwatch->is_open && stopwatch->delay_fd >= 0)
		close(stopwatch->delay_fd);
	stopwatch->is_open = false;
}
