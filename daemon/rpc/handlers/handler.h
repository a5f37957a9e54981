/* What the daemon does for each row of proto/methods.def. */
#ifndef RPC_HANDLER_H
#define RPC_HANDLER_H

#include "daemon/rpc/calls/call.h"

/* A handler per row: appends the result to call->reply. 0, a status that call->error explains, or CALL_LATER or
 * CALL_ELSEWHERE. Room for the reply is made first: what is done can be reported.
 *
 * A resolver finds the tensors (call->binding), claims what is accessed of them (call_claim), and says what the
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

#endif
