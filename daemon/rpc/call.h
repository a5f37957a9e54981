/* One request on its way to its reply, as the handlers see it. */
#ifndef RPC_CALL_H
#define RPC_CALL_H

#include "daemon/rpc/recording.h"
#include "daemon/rpc/reply.h"
#include "daemon/rpc/rpc.h"

struct call;
struct job;

/* What is left of a call that returned LATER in a job (later.h); work NULL: it wants to become a job. */
struct call_step {
	void (*work)(void *arg);
	int (*finish)(struct call *call, void *arg);
	void *arg;
	bool is_long;
};

struct call {
	struct rpc *rpc;
	struct session *session;
	struct npumem_error *error;
	struct prepare_op *prepared; /* room for one op */
	struct reply reply;
	size_t pending;		/* bytes of the reply that later operations of the same request need at least */
	bool keep_result;	/* the result counts although the status is not OK */
	enum tensors_turn turn; /* of an allocation */
	struct rpc_peer *peer;	/* whose other requests this one may speak of; NULL: there are none */
	unsigned method;	/* enum call_method */
	const uint8_t *message; /* the request; NULL: it never was a call */
	size_t bytes;
	uint64_t start_ns; /* when it came; 0 where there is no clock */
	bool may_become_job;
	struct job *job; /* whose call it is; NULL: it ends where it came in */
	struct call_step step;
	struct recording recording;
};

/* The calls by row, and what is none of them. */
enum call_method {
#define METHOD(name, CALL, Message, handler) CALL_METHOD_##CALL,
#include "daemon/rpc/methods.def"
#undef METHOD
	CALL_METHOD_NONE,
	CALL_METHODS
};
const char *call_method_name(unsigned method);

/* Begins the books of a request that came just now; `request` NULL: one that could not be unpacked. */
void call_begin(struct call *call, const Npumem__V1__Request *request, const uint8_t *message, size_t bytes);

/* rpc_receive of a message that is unpacked here, however long that takes. */
int call_receive(struct rpc *rpc, struct rpc_peer *peer, const uint8_t *message, size_t bytes, struct buffer *out);

/* Why a message that budget was to unpack into is no request; `has_many_fields`: it was not tried. A status. */
int call_refuse_message(struct call *call, size_t bytes, const struct budget *budget, bool has_many_fields);
/* The id of a message that cannot be unpacked, where it comes first, as every protobuf runtime writes it; or 0. */
uint64_t call_salvage_id(const uint8_t *message, size_t bytes);

/* A request that is refused before it is a call, with what rpc->error says; NULL: it was not read. No record has
 * it: it is the load of the moment that refused it, which nobody replays. 0 or -ENOMEM. */
int call_refuse(struct rpc *rpc, struct session *session, const Npumem__V1__Request *request,
		const uint8_t *message, size_t bytes, struct buffer *out);

/* Runs the handler of a request; returns its status, or LATER. Where there is no job it does all steps at once. */
int call_dispatch(struct call *call, const Npumem__V1__Request *request);
/* Ends the reply of a call that was begun. */
void call_end(struct call *call, int status, uint64_t id);

/* A handler per row: appends the result to call->reply. 0, a status that call->error explains, or LATER. */
#define METHOD(name, CALL, Message, handler) int handler(struct call *call, const Npumem__V1__##Message *request);
#include "daemon/rpc/methods.def"
#undef METHOD

#endif
