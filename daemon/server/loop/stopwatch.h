/* Times the loop's turns into the service's metrics.
 *
 * A turn is all that the loop does between two waits for input: from the return of epoll_wait until its next call.
 * Input that comes meanwhile waits for the end of the turn. */
#ifndef SERVER_STOPWATCH_H
#define SERVER_STOPWATCH_H

#include "daemon/server/loop/turns.h"
#include "daemon/service/observed/metrics.h"

struct stopwatch {
	uv_prepare_t prepare;
	struct turns *turns;
	struct metrics *metrics;
	uint64_t cpu_ns;    /* of this thread, when it was last read */
	uint64_t passed_ns; /* in turns since then */
	int delay_fd;	    /* to read how long this thread was ready without a processor; -1: unknown */
	uint64_t delay_ns;  /* that time, when it was last read */
	bool is_open;
};

/* Before `turns` are opened, as of two of libuv's handles the later one comes first. `metrics` outlives the loop's
 * last turn. */
void stopwatch_open(struct stopwatch *stopwatch, struct turns *turns, uv_loop_t *loop, struct metrics *metrics);

/* Forgets the processor time that was spent between turns, and delays; to be called now and then. */
void stopwatch_refresh(struct stopwatch *stopwatch);

/* The handle is closed in the loop's next turn. No effect if it is zero, or closed already. */
void stopwatch_close(struct stopwatch *stopwatch);

#endif
