/* What the daemon does for each row of proto/methods.def. */
#ifndef RPC_HANDLER_H
#define RPC_HANDLER_H

#include "daemon/rpc/calls/call.h"

/* A handler per row: appends the result to call->reply. 0, a status that call->error explains, or CALL_LATER or
 * CALL_ELSEWHERE. Room for the reply is made first: what is done can be reported.
 *
 * A resolver finds the tensors (call->binding), claims what is accessed of them (handler_claim), and says what the
 * request costs. A free is decided here, and the call is committed then. 0; a status: then nothing has changed; or
 * CALL_LATER: it goes on when it is called again, in another turn of the loop. */
#define METHOD(name, CALL, Message, kind, keeps, record, handler, resolver)                                       \
	int handler(struct call *call);                                                                           \
	int resolver(struct call *call);
#include "proto/methods.def"
#undef METHOD

/* As the resolver of an open of this tensor. */
int resolve_open_of(struct call *call, const Npumem__V1__Ref *ref);

/* The resolver, and the handler, of the call's row. */
int handler_resolve(struct call *call);
int handler_handle(struct call *call);

/* ---- for resolvers ---- */

/* A tensor of the request is accessed. 0; RESOURCE_EXHAUSTED. */
int handler_claim(struct call *call, struct tensor *tensor, enum claim_use use);
int handler_claim_op(struct call *call, const struct op *op);
/* A name that the call will give to a tensor: if a free that has arrived gives it back, the call waits for that.
 */
int handler_claim_name(struct call *call, uint32_t uid, const char *name);

/* op_cost; long for one that touches a client's memory, where a page fault can sleep: it is never run on the loop.
 */
int64_t handler_op_cost(const struct call *call, const struct op *op);

#endif
