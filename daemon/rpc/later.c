/* The steps of a call, driven to its end where they may take the loop's time, and told to the job where not. */
#include "daemon/rpc/later.h"

#include "daemon/rpc/job.h"

bool later_is_long(int64_t cost)
{
	return cost > JOB_INLINE_COST;
}

bool later_is_needed(const struct call *call, int64_t cost)
{
	return call->may_become_job && later_is_long(cost);
}

int later_work(struct call *call, int64_t cost, void (*work)(void *arg),
	       int (*finish)(struct call *call, void *arg), void *arg)
{
	call->step = (struct call_step){work, finish, arg, later_is_long(cost)};
	return LATER;
}

bool later_is_cancelled(const struct call *call)
{
	return call->job && (call->job->peer->is_closing || atomic_load(&call->job->progress.cancelled));
}
