/* The charge of a call, and the bytes of its message, which are the connection's until they are needed for longer.
 * Invariant: call->charge is in the user's limits and in peer->call_bytes. */
#include "daemon/rpc/calls/charge.h"

static void flight(const struct call *call, bool begins)
{
	struct session *session = call->session;

	metrics_flight(&session->service->metrics, &session->user->account, &session->usage, begins);
}

/* For its payloads, and for a record, which has the request itself and may begin while this one waits. False
 * without memory for payloads. */
static bool own_message(struct call *call)
{
	uint8_t *copy;

	if (call->owns_message || !call->message)
		return true;
	copy = heap_alloc(call->rpc->heap, call->bytes);
	if (!copy && call->borrowed)
		return false;
	if (copy) {
		memcpy(copy, call->message, call->bytes);
		borrowed_rebase(call->borrowed, call->message, call->bytes, copy);
	}
	call->message = copy;
	call->owns_message = copy != NULL;
	return true;
}

int charge_own_message(struct call *call)
{
	return own_message(call) ? 0 : heap_exhausted(call->error);
}

/* Of host memory, with its reply to come. */
static size_t held_bytes(const struct call *call)
{
	size_t reply = call->reply_bytes > call->out.room ? call->reply_bytes : call->out.room;

	return sizeof(*call) + call->extra_bytes + call->bytes + reply + call->budget.held +
	       claim_heap_bytes(&call->claim) + binding_heap_bytes(&call->binding);
}

static void put_in_books(struct call *call, size_t bytes)
{
	struct limits_table *limits = &call->rpc->service->limits;
	struct limits_user *user = call->session->user;

	if (!call->charge) {
		limits_charge(limits, user, LIMITS_REQUESTS, 1);
		flight(call, true);
	}
	limits_charge(limits, user, LIMITS_REQUEST_BYTES, bytes - call->charge);
	call->peer->call_bytes += bytes - call->charge;
	call->charge = bytes;
}

int charge_call(struct call *call)
{
	struct limits_table *limits = &call->rpc->service->limits;
	struct limits_user *user = call->session->user;
	size_t bytes = held_bytes(call);
	int status = 0;

	if (bytes <= call->charge)
		return 0;
	if (!call->charge)
		status = charge_own_message(call);
	if (!status && !call->charge)
		status = limits_check(limits, user, LIMITS_REQUESTS, 1, call->error);
	if (!status)
		status = limits_check(limits, user, LIMITS_REQUEST_BYTES, bytes - call->charge, call->error);
	if (!status)
		put_in_books(call, bytes);
	return status;
}

void charge_in_any_case(struct call *call)
{
	size_t bytes = held_bytes(call);

	if (!call->charge)
		own_message(call);
	if (bytes > call->charge)
		put_in_books(call, bytes);
}

int charge_run(struct call *call, size_t bytes)
{
	call->extra_bytes += bytes;
	return charge_call(call);
}

void charge_give_back(struct call *call)
{
	struct limits_table *limits = &call->rpc->service->limits;
	struct limits_user *user = call->session->user;

	if (!call->charge)
		return;
	call->peer->call_bytes -= call->charge;
	limits_give_back(limits, user, LIMITS_REQUESTS, 1);
	limits_give_back(limits, user, LIMITS_REQUEST_BYTES, call->charge);
	flight(call, false);
}
