/* One request, from its first byte to its reply: the same object whether it is short or long, alone or a list, and
 * however it waits.
 *
 *   held -> queued -> ready -> running -> answered
 *                                \-> in line for room -> running
 *
 * held: what its session sent before it may still change what it will find. It is resolved once, when that is
 * over: its tensors are found and its accesses claimed, and nothing looks a name up later. queued: others go
 * before it (service/scheduler.h). ready: its turn has come, and the loop will come to it. running: on a thread,
 * or in steps.
 */
#ifndef RPC_CALL_H
#define RPC_CALL_H

#include "daemon/rpc/order/binding.h"
#include "daemon/rpc/order/claim.h"
#include "daemon/rpc/operate.h"
#include "daemon/rpc/prepare.h"
#include "daemon/rpc/calls/recording.h"
#include "daemon/rpc/resume/repeat.h"
#include "daemon/rpc/reply.h"
#include "daemon/rpc/rpc.h"
#include "daemon/service/scheduler.h"
#include "daemon/service/tensors.h"
#include "proto/decode.h"

struct call;
struct submission;

/* What a call waits for of what its own session sent before it, so that all takes effect as if one after the
 * other. Those behind one that has to wait are held, too. */
enum call_order {
	CALL_AT_ONCE,	    /* nothing, and nothing waits for it: it depends on no tensor */
	CALL_IN_ORDER,	    /* the last two of these, until they have ended */
	CALL_GIVES_ROOM,    /* that, and others that do: what lies where must not depend on which ends first */
	CALL_MAKES_TENSORS, /* that, and what gives room or changes what may lie where */
	CALL_AFTER_ALL,	    /* everything: what comes after it must not change what it is to see */
};

enum call_state { CALL_HELD, CALL_QUEUED, CALL_READY, CALL_RUNNING, CALL_IN_LINE };

/* Of a call that was sent again: what was kept of the first time. */
enum call_known {
	CALL_UNKNOWN,
	CALL_KNOWN,	   /* the reply was made from it */
	CALL_KNOWN_TENSOR, /* the tensor that it was about is there, and told of as it is */
};

/* What is left of a call whose handler returned CALL_LATER. */
struct call_step {
	void (*work)(void *arg);
	int (*finish)(struct call *call, void *arg);
	void *arg;
	bool is_long;
};

/* What a handler returns that has not ended: it goes on by call->step, or ends the call itself. */
enum { CALL_LATER = -1, CALL_ELSEWHERE = -2 };

enum {
	/* About a tenth of a millisecond of work (in op_cost's unit) is done at once, in the loop: less than what
	 * a thread would cost. */
	CALL_INLINE_COST = 200000,
	/* What an operation costs beyond its elements: finding, checking, answering. */
	CALL_OP_COST = 1500,
};

struct call {
	struct scheduler_entry entry; /* first, so that the one is the other */
	struct rpc *rpc;
	struct rpc_peer *peer;
	struct session *session;
	enum call_state state;
	bool is_started, is_paused; /* its handler was called; its next step waits for another turn */
	unsigned method;	    /* enum call_method */
	uint64_t id;
	const Npumem__V1__Request *request; /* read into `budget`; NULL: it could not be */
	struct budget budget;
	const struct decode_borrowed *borrowed; /* payloads of the request, which lie in `message` */
	uint8_t *message; /* its bytes, where somebody needs them; owned where `owns_message` */
	size_t bytes;
	bool owns_message;
	size_t charge; /* what it holds, in the limits' books; 0: it is not in them yet */

	/* What resolving found. */
	struct binding binding;
	struct claim claim;    /* what it accesses */
	struct claim hints[2]; /* one of them: what it may access, while it is held */
	unsigned which_hint;
	bool is_hinted;
	struct prepare_op prepared; /* of a single operation */
	int64_t cost;
	size_t reply_bytes;   /* that its reads will answer with */
	struct repeat repeat; /* whether it does the same when it is done twice */
	enum call_known known;
	bool is_committed;		   /* part of its effect is there: it can no longer be dropped */
	bool changes_room;		   /* what is allocated after it waits for its end */
	bool holds_others;		   /* what its session sends after it is held until its end */
	bool is_in_scheduler, is_in_order; /* counted in the peer's n_in_order */

	/* Its answer. */
	struct buffer out;
	struct reply reply;
	size_t pending;	  /* bytes of the reply that later operations of the same request need at least */
	bool keep_result; /* the result counts although the status is not OK */
	struct npumem_error *error, own_error;
	uint64_t start_ns; /* when it came; 0 where there is no clock */
	struct recording recording;

	/* While it runs. */
	struct operate operate; /* of a single operation */
	int status;
	struct call_step step;
	struct kernel_progress progress;
	bool is_followed; /* in rpc->followed, which tells of its progress */
	uint64_t look_ns; /* when that is told next */
	struct call *next_followed, *prev_followed;
	struct submission *submission;

	struct waiter waiter;	/* of an allocation: its place in the line for room */
	enum tensors_turn turn; /* of an allocation */

	struct call *next, *prev;	      /* of the peer, the latest first */
	struct call *next_held, *prev_held;   /* of the peer, in the order sent */
	struct call *next_ready, *prev_ready; /* of all */
};

/* The calls by row, and what is none of them. */
enum call_method {
#define METHOD(name, CALL, Message, handler, resolver, order) CALL_METHOD_##CALL,
#include "daemon/rpc/methods.def"
#undef METHOD
	CALL_METHOD_NONE,
	CALL_METHODS
};
const char *call_method_name(unsigned method);
enum call_order call_order_of(const struct call *call);

/* ---- its life ---- */

/* A call of a peer for a message that came just now; NULL without memory. */
struct call *call_new(struct rpc *rpc, struct rpc_peer *peer, uint8_t *message, size_t bytes);
/* Answers a call and ends it. `status` is what call->error says, or 0. */
void call_end(struct call *call, int status);
/* Ends it without an answer. */
void call_drop(struct call *call);
/* Gives the spare ones back to the heap. */
void call_pool_deinit(struct rpc *rpc);

/* Reads it: sets request, method and id. 0, or a status that call->error explains. */
int call_decode(struct call *call);
/* Whether it may go on when its message's bytes are gone. Else all that is left is done here, at once. */
static inline bool call_outlives_message(const struct call *call)
{
	return call->owns_message || !call->borrowed;
}

/* For resolvers: a tensor of the request is accessed. 0; RESOURCE_EXHAUSTED. */
int call_claim(struct call *call, struct tensor *tensor, bool writes);
int call_claim_op(struct call *call, const struct op *op);
int call_claim_free(struct call *call, struct tensor *tensor);

/* ---- while it runs ---- */

/* The next step: work(arg), on a thread where it is long, then finish(call, arg) on the loop's thread. What finish
 * returns is what the call returns, and it may begin another step. To be returned from the handler as it is;
 * always ends in finish. */
int call_later(struct call *call, int64_t cost, void (*work)(void *arg),
	       int (*finish)(struct call *call, void *arg), void *arg);
/* The next step is finish(call, arg), after others had a turn. */
int call_pause(struct call *call, int (*finish)(struct call *call, void *arg), void *arg);
/* What the service does next is of this request. */
static inline void call_attribute(const struct call *call)
{
	call->session->request = call->id;
}
/* The end of a step. */
static inline int call_finish_step(struct call *call)
{
	call_attribute(call);
	return call->step.finish(call, call->step.arg);
}
/* Whether the client does not want the answer any more: asked between steps. */
bool call_is_cancelled(const struct call *call);
/* work(arg) on another thread, then done(arg) on the loop's; false: neither, as there is no thread, or the call
 * does not outlive its message. */
bool call_submit_work(const struct call *call, void (*work)(void *arg), void (*done)(void *arg), void *arg);
/* Whether it can only be told to end, as it is under way. */
static inline bool call_is_started(const struct call *call)
{
	return call->is_started && call->state != CALL_IN_LINE;
}
/* One operation, whose work is that of a thread alone. */
static inline bool call_is_single(const struct call *call)
{
	return call->method >= CALL_METHOD_WRITE && call->method <= CALL_METHOD_RUN;
}
static inline bool call_is_long(int64_t cost)
{
	return cost > CALL_INLINE_COST;
}

/* An unfinished request of a peer by its id, or NULL. */
struct call *call_find(const struct rpc_peer *peer, uint64_t id);

#endif
