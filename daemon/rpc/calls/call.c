#include "daemon/rpc/calls/call.h"

#include "daemon/rpc/handlers/prepare.h"

int call_claim(struct call *call, struct tensor *tensor, enum claim_use use)
{
	return claim_tensor(&call->claim, tensor, use) ? heap_exhausted(call->error) : 0;
}

int call_claim_name(struct call *call, uint32_t uid, const char *name)
{
	const struct record *record = names_find(&call->session->service->names, uid, name);

	if (!record || !record_is_going(record))
		return 0;
	return call_claim(call, tensor_root(record_tensor(record)), CLAIM_WRITE);
}

int64_t call_op_cost(const struct call *call, const struct op *op)
{
	int64_t cost = op_cost(call->rpc->service->device, op);

	return op->system.segment && !call_is_long(cost) ? CALL_INLINE_COST + 1 : cost;
}

int call_claim_op(struct call *call, const struct op *op)
{
	/* Beyond very long the number does not matter. */
	if (!call_is_very_long(call->cost) &&
	    (__builtin_add_overflow(call->cost, call_op_cost(call, op), &call->cost) ||
	     __builtin_add_overflow(call->cost, CALL_OP_COST, &call->cost)))
		call->cost = INT64_MAX;
	/* It gets its place in the order, so that it may be left to a thread. */
	if (op->kind != OP_READ && call->cost != INT64_MAX &&
	    persist_is_backlogged(&call->session->service->persist, call->session->user))
		call->cost = INT64_MAX;
	call->reply_bytes += prepare_payload_bytes(op);
	repeat_add(&call->repeat, op);
	/* Its answer may get lost between two hosts, when what it did has been worked on since. */
	if (call_is_single(call) && call->session->lingers && op->kind != OP_READ)
		repeat_never(&call->repeat);
	return claim_op(&call->claim, op) ? heap_exhausted(call->error) : 0;
}
