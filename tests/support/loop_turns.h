/* A loop played by the test: what is queued in service->queue waits until the test runs a piece of it. */
#ifndef SUPPORT_LOOP_TURNS_H
#define SUPPORT_LOOP_TURNS_H

#include "daemon/rpc/rpc.h"

static inline void loop_turns_wake(void *ctx)
{
	(void)ctx;
}

/* From here on work is queued, until loop_turns_end; before that it is run at once. */
static inline void loop_turns_begin(struct rpc *rpc)
{
	rpc->service->queue.wake = loop_turns_wake;
}

/* Runs the next piece of work; false: none is queued. */
static inline bool loop_turns_one(struct rpc *rpc)
{
	struct fair_work *work = fair_queue_take(&rpc->service->queue);

	if (!work)
		return false;
	work->run(work);
	rpc_settle(rpc);
	return true;
}

/* Runs all that is queued and that follows from it; returns how many pieces there were. */
static inline unsigned loop_turns_all(struct rpc *rpc)
{
	unsigned n = 0;

	while (loop_turns_one(rpc))
		n++;
	return n;
}

static inline void loop_turns_end(struct rpc *rpc)
{
	rpc->service->queue.wake = NULL;
	rpc_settle(rpc);
}

#endif
