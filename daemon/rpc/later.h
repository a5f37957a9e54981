/* Calls that take long. A handler that would keep the loop for more than about a tenth of a millisecond does so in
 * steps on other threads. It is called where the request came in, where it returns LATER before it has changed or
 * appended anything; so the request becomes a job, and in the job the handler is called again. */
#ifndef RPC_LATER_H
#define RPC_LATER_H

#include "daemon/rpc/call.h"

enum { LATER = -1 };

/* Whether work of this cost (op_cost's unit) is too long for the loop. */
bool later_is_long(int64_t cost);
/* Whether it is too long for where the call is: return LATER then. */
bool later_is_needed(const struct call *call, int64_t cost);

/* The next step: work(arg), on a thread where it is long and the call is a job's, then finish(call, arg) on the
 * loop's thread. What finish returns is what the call returns, and it may begin another step. To be returned from
 * the handler as it is; always ends in finish. */
int later_work(struct call *call, int64_t cost, void (*work)(void *arg),
	       int (*finish)(struct call *call, void *arg), void *arg);

/* Whether the client does not want the answer any more: asked between steps. */
bool later_is_cancelled(const struct call *call);

#endif
