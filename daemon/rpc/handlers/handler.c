#include "daemon/rpc/handlers/handler.h"

#include "daemon/rpc/handlers/operations/prepare.h"

/* A request that is of no row has been refused when it was decoded. */
static const struct {
	int (*resolve)(struct call *call);
	int (*handle)(struct call *call);
} rows[] = {
#define METHOD(name, CALL, Message, kind, keeps, record, handler, resolver) {resolver, handler},
#include "proto/methods.def"
#undef METHOD
};

int handler_nothing(struct call *call)
{
	(void)call;
	return 0;
}

int handler_resolve(struct call *call)
{
	return rows[call->method].resolve(call);
}

int handler_handle(struct call *call)
{
	return rows[call->method].handle(call);
}

/* ---- for resolvers ---- */

int handler_claim(struct call *call, struct tensor *tensor, enum claim_use use)
{
	return claim_tensor(&call->claim, tensor, use) ? heap_exhausted(call->error) : 0;
}

int handler_claim_name(struct call *call, uint32_t uid, const char *name)
{
	const struct record *record = names_find(&call->session->service->names, uid, name);


	if (!record || !record_is_going(record))
		return 0;
	return claim_going(&call->claim, record_tensor(record)) ? heap_exhausted(call->error) : 0;
}

int64_t handler_op_cost(const struct call *call, const struct op *op)
{
	int64_t cost = op_cost(call->rpc->service->device, op);

	return op->system.segment && !call_is_long(cost) ? CALL_INLINE_COST + 1 : cost;
}

int handler_claim_op(struct call *call, const struct op *op)
{
	/* Beyond very long the number does not matter. */
	if (!call_is_very_long(call->cost) &&
	    (__builtin_add_overflow(call->cost, handler_op_cost(call, op), &call->cost) ||
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
