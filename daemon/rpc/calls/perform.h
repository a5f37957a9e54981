/* The work of a call whose turn has come. */
#ifndef RPC_PERFORM_H
#define RPC_PERFORM_H

#include "daemon/rpc/calls/call.h"

/* The end of a step. */
static inline int perform_finish_step(struct call *call)
{
	call_attribute(call);
	return call->step.finish(call);
}

/* Runs its handler. It may end. */
void perform_begin(struct call *call);
/* What a handler, or a step, returned. */
void perform_go_on(struct call *call, int status);
/* Ends a call that is under way as soon as can be. It may end now. */
void perform_cancel(struct call *call);

/* ---- for handlers ---- */

/* The next step: work(call), on a thread where it is long, then finish(call) on the loop's thread. What finish
 * returns is what the call returns, and it may begin another step. To be returned from the handler as it is;
 * always ends in finish. */
int perform_later(struct call *call, int64_t cost, void (*work)(struct call *call),
		  int (*finish)(struct call *call));
/* The next step is finish(call), after others had a turn. */
int perform_pause(struct call *call, int (*finish)(struct call *call));
/* The next step is finish(call), behind all requests that have arrived by now. For a call without accesses, or one
 * that has left the scheduler and claims others. */
int perform_go_behind(struct call *call, int (*finish)(struct call *call));
/* The next step is finish(call), when all writes of the tensor that arrived before the call are over: maybe at
 * once. The call's first access needs the root of the tensor. */
int perform_read_too(struct call *call, const struct tensor *tensor, int (*finish)(struct call *call));
/* Runs work(arg) on another thread. Then done(arg) runs on the loop's, and the calls that it has made runnable are
 * advanced. Charges the call. `to` is the caller's and stays until done(arg). `waits`: see rpc_executor. false:
 * neither will run, as there is no thread, or the call does not outlive its message. */
bool perform_away(struct call *call, struct call_work *to, bool waits, void (*work)(void *arg),
		  void (*done)(void *arg), void *arg);
/* Called on a task's thread when the task pauses (true) and when it continues (false). The note of running
 * requests does not have a request that is paused. */
void perform_note_pause(bool is_paused);
/* Whether no thread has begun it, and none will: the caller runs it, as far as it must. */
bool perform_withdraw(struct call_work *work);
/* After perform_away has failed. RESOURCE_EXHAUSTED: there was no memory for it, and the loop must not run it.
 * 0: no thread could have run it, and it is run here. */
int perform_refuse(const struct call *call, struct npumem_error *error);

#endif
