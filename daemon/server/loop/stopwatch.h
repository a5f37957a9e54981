/* Times the loop's turns into the service's metrics.
 *
 * A turn is all that the loop does between two waits for input: from when the kernel has told what is ready until
 * it is asked again. What comes meanwhile waits for its end. */
#ifndef SERVER_STOPWATCH_H
#define SERVER_STOPWATCH_H

#include "daemon/server/loop/turns.h"
#include "daemon/service/observed/metrics.h"

struct stopwatch {
	uv_prepare_t prepare;
	struct turns *turns;
	struct metrics *metrics;
	uint64_t cpu_ns;    /* of this thread, when it was last asked for */
	uint64_t passed_ns; /* in turns since then */
	int delay_fd;	    /* tells how long this thread was ready and had no processor; -1: nothing does */
	uint64_t delay_ns;  /* of that, when it was last asked for */
	bool is_open;
};

/* Before `turns` are opened, as of two of libuv's handles the later one comes first. `metrics` outlives the loop's
 * last turn. */
void stopwatch_open(struct stopwatch *stopwatch, struct turns *turns, uv_loop_t *loop, struct metrics *metrics);

/* Forgets the processor time that was spent between turns, and delays; to be called now and then. */
void stopwatch_refresh(struct stopwatch *stopwatch);

/* The handle is closed in the loop's next turn. Nothing for one that is zero, or closed already. */
void stopwatch_close(struct stopwatch *stopwatch);

#endif
