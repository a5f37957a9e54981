/* One request, from its first byte to its reply: the same object whether it is short or long, alone or a list, and
 * however it waits.
 *
 *   held -> queued -> ready -> running -> answered
 *                                \-> in line for room -> running
 *
 * held: it waits at its session's gate (order/gate.h). queued: it has arrived, and others go before it
 * (service/scheduler.h). ready: its turn has come, and the loop will run it. running: on a thread, or in steps.
 */
#ifndef RPC_CALL_H
#define RPC_CALL_H

#include "daemon/rpc/core.h"
#include "daemon/rpc/order/claim.h"
#include "daemon/rpc/reply.h"
#include "daemon/rpc/resume/repeat.h"
#include "daemon/service/kept/persist.h"
#include "daemon/service/kept/runs.h"
#include "daemon/service/observed/inspect.h"
#include "daemon/service/order/scheduler.h"
#include "daemon/service/tensors/tensors.h"
#include "proto/decode.h"
#include "proto/methods.h"

struct call;
struct operate;
struct submission;
struct tensor_page;

enum call_state { CALL_HELD, CALL_QUEUED, CALL_READY, CALL_RUNNING, CALL_IN_LINE };

/* What is left of a call whose handler returned CALL_LATER. */
struct call_step {
	void (*work)(struct call *call);
	int (*finish)(struct call *call);
	bool is_long;
	bool goes_behind; /* it enters the order again first */
	bool waits;	  /* for its turn, as it is in the order already */
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

/* What the record is to have of a request (recording.h). */
struct recording {
	uint64_t digest;
	struct recorder_transfer *first, *last; /* owned */
	const struct segment *shared;		/* that the request shared */
	bool is_done;				/* it is in the record, before the call's end */
};

/* How far a dump is (handlers/handle_device.c). */
struct call_dumping {
	struct inspect_dump dump;
	int64_t claimed_bytes; /* behind what was read: bytes of tensors that the call has claimed */
	size_t mark;	       /* of the reply */
	uint8_t *data;	       /* in the reply, for all bytes */
};

/* Work of a call on another thread. */
struct call_work {
	struct call *call;
	void (*work)(void *arg);
	void (*done)(void *arg);
	void *arg;
	struct runs_note run;
};

struct call {
	struct scheduler_entry entry; /* first, so that the one is the other */
	struct rpc *rpc;
	struct rpc_peer *peer;
	struct session *session;
	enum call_state state;
	bool is_started, is_paused; /* its handler was called; its next step waits for another turn */
	unsigned method;	    /* its row's number */
	uint64_t id;
	const Npumem__V1__Request *request; /* read into `budget`; NULL: it could not be */
	struct list *list;		    /* whose operations a submit runs; NULL: it has its own */
	const struct borrowed *borrowed;    /* payloads of the request, which lie in `message` */
	uint8_t *message;		    /* its bytes, where they are needed; owned where `owns_message` */
	size_t bytes;
	bool owns_message;
	size_t extra_bytes;		    /* host memory of `operate` and `kept_error`, and that it runs in */
	void (*release)(struct call *call); /* at its end: gives back `operate`. NULL: there is none */
	size_t charge;			    /* what it holds, in the limits' books; 0: it is not in them yet */

	/* What resolving found. */
	size_t n_resolved;	 /* of a submit's operations: their tensors were found, */
	uint64_t resolved_at;	 /* from service->changes on */
	struct operate *operate; /* of one operation, from when it is resolved on; else NULL */
	int64_t cost;
	size_t reply_bytes;		  /* that its reads will answer with */
	struct repeat repeat;		  /* whether it does the same when it is done twice */
	int (*handle)(struct call *call); /* in place of its row's handler, as it is sent again and was done
					   * (handlers/replayed.h). NULL: it was not */
	bool is_committed;		  /* part of its effect is there: it can no longer be dropped */
	bool is_in_scheduler;
	bool has_arrived, shuts; /* counted in the peer's n_arrived, and in its n_shut */
	size_t n_changed;	 /* tensors that a table request makes or changes, */
	size_t change_accesses;	 /* and what its user's n_accesses counts for them, beside those of its claim */

	/* Its answer. */
	size_t pending;	  /* bytes of the reply that later operations of the same request need at least */
	bool keep_result; /* the result counts although the status is not OK */
	struct npumem_error *error;	 /* rpc->error, its own, its operation's or its submission's */
	struct npumem_error *kept_error; /* its own; NULL: it has none */
	uint64_t start_ns;		 /* when it came; 0 where there is no clock */
	struct recording recording;

	/* While it runs. */
	int (*withdraw)(struct call *call); /* it is cancelled: what of it waits for a thread need not. What a
					     * handler returns. NULL: nothing of it does */
	struct kernel_progress progress;
	bool is_followed;   /* in rpc->followed: its progress is reported */
	uint64_t report_ns; /* when it is reported next */
	struct call *next_followed, *prev_followed;
	struct submission *submission;
	struct tensor_page *page; /* whose tensors' bytes it counts; owned */
	void *task;		  /* what its handler works on in steps */

	/* Of an allocation. */
	enum tensors_turn turn;
	bool fits_empty;      /* of one that may wait for room, and lacked it: an empty device has it */
	struct waiter waiter; /* its place in the line for room */

	struct call *next, *prev;	    /* of the peer, the latest first */
	struct call *next_held, *prev_held; /* of the peer */

	/* Up to here 0 at first. From here on each member is set before it is used. */
	struct budget budget;
	struct buffer out;
	struct reply reply;
	struct binding binding;
	struct claim claim; /* what it accesses */
	struct call_step step;
	struct tensors_free freeing; /* of a free */
	struct call_dumping dumping; /* of a dump */
	struct call_work away;	     /* a step on a thread */
	struct fair_work work;	     /* while it is ready */
};

/* Thousands may wait. */
_Static_assert(sizeof(struct call) <= 2048, "what is large is taken by the requests that need it");

static inline const struct methods_row *call_row(const struct call *call)
{
	return &methods_rows[call->method];
}

/* Whether it may go on when its message's bytes are gone. Else all that is left is done here, at once. */
static inline bool call_outlives_message(const struct call *call)
{
	return call->owns_message || !call->borrowed;
}

/* ---- while it runs ---- */

/* Whether an operation of a call is left to a thread, as it writes and the disk is behind. One that is not in the
 * order of others must end where it was resolved. */
static inline bool call_waits_for_disk(const struct call *call, const struct op *op)
{
	return call->is_in_scheduler && op->kind != OP_READ &&
	       persist_is_backlogged(&call->session->service->persist, call->session->user);
}
/* What the service does next is of this request; and the next process finds that it ran if this one dies now. */
static inline void call_attribute(const struct call *call)
{
	call->session->request = call->id;
	persist_change_for(&call->session->service->persist, call->session->user);
	runs_on_loop(call->session, call->id, call->method);
}
/* Whether the client does not want the answer any more: asked between steps. */
static inline bool call_is_cancelled(const struct call *call)
{
	return call->peer->is_closing || atomic_load(&call->progress.cancelled);
}
/* Whether it is under way: it can be cancelled, not dropped. */
static inline bool call_is_started(const struct call *call)
{
	return call->is_started && call->state != CALL_IN_LINE;
}
/* One operation, whose work is that of a thread alone. */
static inline bool call_is_single(const struct call *call)
{
	return call_row(call)->kind == METHODS_KIND_OPERATION;
}
static inline bool call_is_long(int64_t cost)
{
	return cost > CALL_INLINE_COST;
}
/* More than a millisecond or so: too long for all others to wait until it ends. */
static inline bool call_is_very_long(int64_t cost)
{
	return cost > 10 * CALL_INLINE_COST;
}

/* Whether it waits for room, and is in the order while a place over others is searched for it. */
static inline bool call_is_searched_for(const struct call *call)
{
	return waiting_is_searched_for(&call->waiter);
}

/* Queues a call that may begin, or go on. Other users may wait for a search: it takes turns with the thousands of
 * requests that its own user may have, instead of going behind them, or all before them. */
static inline void call_make_ready(struct call *call)
{
	struct service *service = call->rpc->service;
	struct limits_user *user = call->session->user;

	call->state = CALL_READY;
	call->work = (struct fair_work){.run = call->rpc->run_call};
	fair_queue_add(&service->queue, call_is_searched_for(call) ? &user->search : &user->loop, &call->work);
}

#endif
