/* What a call holds, in the books of its uid, and the bytes of its message, which are the connection's until
 * somebody needs them for longer. Invariant: call->charge is what the books have of it, and what peer->call_bytes
 * has. */
#include "daemon/rpc/calls/charge.h"

#include "daemon/rpc/operate.h"

static void flight(const struct call *call, bool begins)
{
	struct session *session = call->session;

	metrics_flight(&session->service->metrics, &session->user->account, &session->usage, begins);
}

/* For its payloads, and for a record, which has the request itself and may begin while this one waits. */
int charge_own_message(struct call *call)
{
	uint8_t *copy;

	if (call->owns_message || !call->message)
		return 0;
	copy = heap_alloc(call->rpc->heap, call->bytes);
	if (!copy && call->borrowed)
		return heap_exhausted(call->error);
	if (copy) {
		memcpy(copy, call->message, call->bytes);
		decode_rebase(call->borrowed, call->message, call->bytes, copy);
	}
	call->message = copy;
	call->owns_message = copy != NULL;
	return 0;
}

/* Host memory that it holds, and its reply will. */
static size_t held_bytes(const struct call *call)
{
	size_t reply = call->reply_bytes > call->out.room ? call->reply_bytes : call->out.room;

	return sizeof(*call) + (call->operate ? sizeof(*call->operate) : 0) +
	       (call->kept_error ? sizeof(*call->kept_error) : 0) + call->bytes + reply + call->budget.held +
	       claim_heap_bytes(&call->claim) + binding_heap_bytes(&call->binding) + call->run_bytes;
}

static void begin_flight(struct call *call)
{
	limits_charge(&call->rpc->service->limits, call->session->user, LIMITS_REQUESTS, 1);
	flight(call, true);
}

void charge_more(struct call *call)
{
	struct limits_user *user = call->session->user;
	size_t bytes = held_bytes(call);

	if (bytes <= call->charge)
		return;
	call->peer->call_bytes += bytes - call->charge;
	limits_charge(&call->rpc->service->limits, user, LIMITS_REQUEST_BYTES, bytes - call->charge);
	call->charge = bytes;
}

int charge_call(struct call *call)
{
	struct limits_table *limits = &call->rpc->service->limits;
	struct limits_user *user = call->session->user;
	bool is_first = !call->charge;
	size_t bytes = held_bytes(call);
	int status = 0;

	if (bytes <= call->charge)
		return 0;
	if (is_first)
		status = charge_own_message(call);
	if (!status && is_first)
		status = limits_check(limits, user, LIMITS_REQUESTS, 1, call->error);
	if (!status)
		status = limits_check(limits, user, LIMITS_REQUEST_BYTES, bytes - call->charge, call->error);
	if (status)
		return status;
	charge_more(call);
	if (is_first)
		begin_flight(call);
	return 0;
}

void charge_in_any_case(struct call *call)
{
	bool is_first = !call->charge;

	if (!charge_call(call))
		return;
	npumem_error_clear(call->error);
	charge_more(call);
	if (is_first)
		begin_flight(call);
}

int charge_run(struct call *call, size_t bytes)
{
	call->run_bytes = bytes;
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
