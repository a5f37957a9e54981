/* What the daemon does for each row of proto/methods.def. */
#ifndef RPC_HANDLER_H
#define RPC_HANDLER_H

#include "daemon/rpc/calls/call.h"

/* A handler per row: appends the result to call->reply. 0, a status that call->error explains, or CALL_LATER or
 * CALL_ELSEWHERE. Room for the reply is made first: what is done can be reported. */
#define METHOD(name, CALL, Message, kind, keeps, record, handler, resolver)                                       \
	int handler(struct call *call, const Npumem__V1__##Message *request);
#include "proto/methods.def"
#undef METHOD

/* A resolver finds the tensors (call->binding), claims what is accessed of them (call_claim), and says what the
 * request costs. A free is decided here, and the call is committed then. 0; a status: then nothing has changed; or
 * CALL_LATER: it goes on when it is called again, in another turn of the loop. */
static inline int resolve_nothing(struct call *call, const void *request)
{
	(void)call;
	(void)request;
	return 0;
}
int resolve_dump(struct call *call, const Npumem__V1__DumpRequest *request);
int resolve_compact(struct call *call, const Npumem__V1__CompactRequest *request);
int resolve_alloc(struct call *call, const Npumem__V1__AllocRequest *request);
int resolve_view(struct call *call, const Npumem__V1__ViewRequest *request);
int resolve_free(struct call *call, const Npumem__V1__FreeRequest *request);
int resolve_open(struct call *call, const Npumem__V1__OpenRequest *request);
int resolve_seal(struct call *call, const Npumem__V1__SealRequest *request);
int resolve_rename(struct call *call, const Npumem__V1__RenameRequest *request);
int resolve_grant(struct call *call, const Npumem__V1__GrantRequest *request);
int resolve_write(struct call *call, const Npumem__V1__WriteRequest *request);
int resolve_read(struct call *call, const Npumem__V1__ReadRequest *request);
int resolve_fill(struct call *call, const Npumem__V1__FillRequest *request);
int resolve_copy(struct call *call, const Npumem__V1__CopyRequest *request);
int resolve_run(struct call *call, const Npumem__V1__RunRequest *request);
int resolve_submit(struct call *call, const Npumem__V1__SubmitRequest *request);
int resolve_snapshot(struct call *call, const Npumem__V1__SnapshotRequest *request);
int resolve_record(struct call *call, const Npumem__V1__RecordRequest *request);

/* The resolver, and the handler, of the call's row. */
int handler_resolve(struct call *call);
int handler_handle(struct call *call);

#endif
