/* Times the loop's turns into the service's metrics.
 *
 * A turn is all that the loop does between two waits for input: from when the kernel has told what is ready until
 * it is asked again. What comes meanwhile waits for its end. */
#ifndef SERVER_STOPWATCH_H
#define SERVER_STOPWATCH_H

#include <uv.h>

#include "daemon/service/metrics.h"

struct stopwatch {
	uv_prepare_t prepare;
	struct metrics *metrics;
	uint64_t at_ns, cpu_ns, idle_ns; /* when the loop last went to wait */
	bool is_open;
};

/* Before uv_run. The loop was made with UV_METRICS_IDLE_TIME; `metrics` outlives its last turn. */
void stopwatch_open(struct stopwatch *stopwatch, uv_loop_t *loop, struct metrics *metrics);

/* The handle is closed in the loop's next turn. Nothing for one that is zero, or closed already. */
void stopwatch_close(struct stopwatch *stopwatch);

#endif
