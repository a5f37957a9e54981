/* A call in line is tried again from the loop, and in no other way. Invariant: call->state is CALL_IN_LINE exactly
 * while its waiter is in the service's line. */
#include "daemon/rpc/line.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "daemon/rpc/advance.h"

static struct call *call_of(struct waiter *waiter)
{
	return (struct call *)((char *)waiter - offsetof(struct call, waiter));
}

/* What was missing now stays in the message and the fields. */
static void say_never(struct call *call)
{
	struct npumem_error why = *call->error;

	snprintf(call->error->message, sizeof(call->error->message),
		 "not even an empty device has room for this: %.400s", why.message);
}

bool line_join(struct call *call)
{
	struct rpc *rpc = call->rpc;
	struct waiting *waiting = &rpc->service->waiting;
	const Npumem__V1__AllocRequest *request;
	bool was_empty = !waiting->first;

	if (call->method != CALL_METHOD_ALLOC || call->turn != TENSORS_LAST || !tensors_lacked_room(call->error))
		return false;
	request = call->request->alloc;
	if (!waiting_measure(rpc->service->device, rpc->requests, (unsigned)request->n_tensors, &call->waiter)) {
		say_never(call);
		return false;
	}
	call->waiter.user = call->session->user;
	call->waiter.deadline_ns =
		rpc->now_ns ? rpc->now_ns() + UINT64_C(1000000) * request->wait_ms : WAITING_NEVER;
	npumem_error_clear(call->error);
	if (call_charge(call) || waiting_add(waiting, &call->waiter, call->error))
		return false;
	/* It has just been tried. */
	if (was_empty)
		waiting_refused(rpc->service, &call->waiter);
	advance_step_aside(call);
	return true;
}

/* 0: granted. Else call->error says why not. */
static int try(struct call *call, enum tensors_turn turn)
{
	call->turn = turn;
	return advance_try_again(call);
}

/* ---- stints ---- */

/* Of trying one after the other, as each may take a good part of a millisecond of the loop. */
enum { STINT_TRIES = 16, STINT_NS = 250000, STINT_PAUSE_NS = 1000000 };

struct stint {
	uint64_t began_ns;
	unsigned n;
};

/* False: it is a pause. */
static bool stint_begin(struct rpc *rpc, struct stint *stint)
{
	*stint = (struct stint){.began_ns = rpc->now_ns ? rpc->now_ns() : 0};
	if (stint->began_ns < rpc->serve_ns)
		return false;
	rpc->serve_ns = 0;
	return true;
}

/* Where nothing would go on after a pause there is none. */
static bool stint_is_over(struct rpc *rpc, struct stint *stint)
{
	uint64_t now;

	if (!rpc->now_ns || !rpc->set_alarm)
		return false;
	now = rpc->now_ns();
	if (stint->n++ < STINT_TRIES && now - stint->began_ns < STINT_NS)
		return false;
	rpc->serve_ns = now + STINT_PAUSE_NS;
	return true;
}

/* ---- serving ---- */

static void end_served(struct call *call, int status)
{
	waiting_served(&call->rpc->service->waiting, &call->waiter);
	call->state = CALL_RUNNING;
	call_end(call, status);
}

uint64_t line_due(const struct rpc *rpc)
{
	const struct service *service = rpc->service;
	uint64_t deadline, window_end;

	if (!service->waiting.first || scheduler_is_exclusive(&service->scheduler))
		return WAITING_NEVER;
	if (rpc->serve_ns)
		return rpc->serve_ns;
	deadline = waiting_deadline(&service->waiting);
	window_end = waiting_window_end(service);
	return deadline < window_end ? deadline : window_end;
}

void line_serve(struct rpc *rpc)
{
	struct waiting *waiting = &rpc->service->waiting;
	struct waiter *waiter;
	struct stint stint;

	if (!waiting->first || scheduler_is_exclusive(&rpc->service->scheduler) || !stint_begin(rpc, &stint))
		return;
	while ((waiter = waiting_next(rpc->service)) && !stint_is_over(rpc, &stint)) {
		struct call *call = call_of(waiter);
		int status = try(call, TENSORS_HEAD);

		if (!status || !tensors_lacked_room(call->error))
			end_served(call, status);
		else
			waiting_refused(rpc->service, waiter);
	}
}

/* What was missing stays in the message and the fields. */
static void say_deadline(struct call *call)
{
	struct npumem_error why = *call->error;

	call->error->status = NPUMEM_DEADLINE_EXCEEDED;
	snprintf(call->error->message, sizeof(call->error->message), "waited %" PRIu32 " ms: %.400s",
		 call->request->alloc->wait_ms, why.message);
}

void line_expire(struct rpc *rpc)
{
	struct waiting *waiting = &rpc->service->waiting;
	uint64_t now = rpc->now_ns ? rpc->now_ns() : 0;
	struct waiter *waiter;
	struct stint stint;

	if (scheduler_is_exclusive(&rpc->service->scheduler) || !stint_begin(rpc, &stint))
		return;
	while ((waiter = waiting_expired(waiting, now)) && !stint_is_over(rpc, &stint)) {
		struct call *call = call_of(waiter);
		bool has_turn = waiting_has_turn(rpc->service, waiter);
		int status = try(call, has_turn ? TENSORS_HEAD : TENSORS_LAST);

		if (!status || !tensors_lacked_room(call->error)) {
			end_served(call, status);
			continue;
		}
		say_deadline(call);
		call_end(call, NPUMEM_DEADLINE_EXCEEDED);
	}
}

void rpc_peer_end_waiting(struct rpc *rpc, struct rpc_peer *peer)
{
	struct call *call = peer->calls, *next;

	for (; call && !peer->is_closing; call = next) {
		next = call->next;
		if (call->state != CALL_IN_LINE)
			continue;
		npumem_error_clear(call->error);
		call_end(call, npumem_error_set(call->error, NPUMEM_UNAVAILABLE, "the daemon is going down"));
	}
	advance_settle(rpc);
}
