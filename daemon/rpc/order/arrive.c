/* A request arrives once: it is resolved, and enters its queues. */
#include "daemon/rpc/order/arrive.h"

#include "daemon/rpc/calls/charge.h"
#include "daemon/rpc/calls/life.h"
#include "daemon/rpc/calls/perform.h"
#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/handlers/replayed.h"
#include "daemon/rpc/order/gate.h"

static int resolve(struct call *call)
{
	int status;

	call_attribute(call);
	status = replayed_resolve(call);
	if (status || call->handle)
		return status;
	status = handler_resolve(call);
	return status ? status : replayed_check(call);
}

/* What is not done when the loop goes on must be in the books. */
static void check_charge(struct call *call)
{
	int status;

	if (call->state == CALL_READY && call->rpc->arriving == call && !call_is_long(call->cost))
		return;
	if (call->is_committed) {
		charge_in_any_case(call);
		return;
	}
	status = charge_call(call);
	if (status)
		life_end(call, status);
}

static void take_place(struct call *call)
{
	gate_arrive(call);
	check_charge(call);
}

/* Whether it is over when its handler returns, and no request goes before it: it need not enter any queue. */
static bool may_run_at_once(const struct call *call)
{
	return call_is_single(call) && !call_is_long(call->cost) &&
	       scheduler_is_clear(&call->rpc->service->scheduler, &call->session->user->order,
				  call->claim.accesses, call->claim.n);
}

/* A free of a tensor that the request names has arrived. NOT_FOUND is answered behind the free: if the daemon were
 * killed before, the tensor would still exist. */
static bool refuse_behind(struct call *call)
{
	struct tensor *going = call->binding.going;

	if (!going || life_keep_error(call))
		return false;
	claim_restart(&call->claim);
	claim_going(&call->claim, going);
	call->cost = 0;
	take_place(call);
	return true;
}

/* At the gate, or still there. False: it was refused and has ended. */
static bool hold(struct call *call)
{
	int status;

	if (call->state != CALL_HELD)
		gate_hold(call);
	status = charge_call(call);
	if (status)
		life_end(call, status);
	return !status;
}

static void arrive(struct call *call)
{
	int status = resolve(call);

	/* It goes on in another turn of the loop, and is the first at the gate until then. */
	if (status == CALL_LATER) {
		if (hold(call))
			rpc_wake(call->rpc, call->peer);
		return;
	}
	gate_let_in(call);
	if (status) {
		if (!refuse_behind(call))
			life_end(call, status);
		return;
	}
	binding_bind(&call->binding);
	if (may_run_at_once(call)) {
		call->state = CALL_RUNNING;
		perform_begin(call);
		return;
	}
	take_place(call);
}

void arrive_open(struct rpc *rpc, struct rpc_peer *peer, uint64_t end_ns)
{
	struct call *call;

	while ((call = peer->first_held) && gate_lets_in(call)) {
		if (rpc_spell_is_over(rpc, end_ns)) {
			rpc_wake(rpc, peer);
			return;
		}
		arrive(call);
		if (peer->first_held == call)
			return;
	}
	gate_wake_next(rpc, peer);
}

void arrive_receive(struct call *call)
{
	if (!call->peer->first_held && gate_lets_in(call))
		arrive(call);
	else
		hold(call);
}
