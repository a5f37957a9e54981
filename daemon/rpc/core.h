/* What all of this folder works on: the one struct rpc, and the other end of each connection. rpc.h is their
 * interface. */
#ifndef RPC_CORE_H
#define RPC_CORE_H

#include "daemon/rpc/order/claim.h"
#include "daemon/service/session.h"
#include "daemon/service/tensors/tensors.h"

struct detached;
struct buffer;
struct call;
struct list;
struct operate;
struct rpc;
struct rpc_peer;

/* An answered request, for the access log and the metrics. */
struct rpc_answer {
	const struct session *session;
	const char *call;
	int status;
	const char *message; /* why it was refused, with what the client called things; else empty */
	uint64_t bytes_in, bytes_out, ns;
};

/* Where long operations run: threads, or what a test puts in their place. */
struct rpc_executor {
	/* Runs work(arg) on another thread, then done(arg) on the thread that called; users take turns where
	 * there is more work than threads. `waits`: where its user can have no thread, the work waits for one that
	 * such users share; only for work that ends soon and by itself. 0; -ENOMEM: neither will be called. */
	int (*submit)(void *ctx, struct limits_user *user, bool waits, void (*work)(void *arg),
		      void (*done)(void *arg), void *arg);
	/* Takes back what was submitted for that user with that arg, on the thread that called. True: it had not
	 * begun, and neither will be called; false: it has, or is not there. NULL: nothing can be taken back. */
	bool (*withdraw)(void *ctx, struct limits_user *user, void *arg);
	void *ctx;
};

/* One per daemon: what all requests use in turn, so that an ordinary one takes no memory from the heap. */
struct rpc {
	struct service *service;
	const struct heap *heap;
	void (*answered)(const struct rpc_answer *answer); /* called for each; may be NULL */
	struct rpc_executor executor; /* submit NULL: there are no threads, and everything runs at once */
	uint64_t (*now_ns)(void);     /* a monotonic clock, for any thread; at first one that stands still */
	uint64_t began_ns;	      /* when the daemon did, by it */
	const char *socket;	      /* where it listens; NULL: nowhere */
	/* Asks for rpc_tick at that time, instead of what was asked for before; UINT64_MAX: never. NULL: no
	 * deadlines. */
	void (*set_alarm)(void *ctx, uint64_t at_ns);
	/* The daemon is to end, after what is answered at the moment. NULL: it is not rpc's to ask. */
	void (*shut_down)(void *ctx, const struct session *session);
	/* Its client goes on over another connection: the one that it has ends soon. NULL: by itself. */
	void (*hang_up)(void *ctx, struct session *session);
	/* It was to linger, and its user has as many of these as it may: it ends. NULL: by itself. */
	void (*not_kept)(void *ctx, const struct session *session);
	void *ctx;	     /* of these */
	bool keeps_sessions; /* the daemon ends: those with a token stay when their connection ends */

	/* rpc's own. */
	void (*run_call)(struct fair_work *work); /* a call's turn, and a peer's; */
	void (*run_peer)(struct fair_work *work);
	void (*settle)(struct rpc *rpc); /* rpc_settle: each callback from a thread ends with it */
	bool keeps_clock;		 /* a reading is good until rpc_clock_passed: within a turn of the loop */
	uint64_t clock_ns;		 /* the latest reading; 0: there is none */
	uint64_t alarm_ns;		 /* that was asked for */
	uint64_t send_ns;		 /* no more events before then; 0: there are none that wait */
	uint64_t report_ns;		 /* progress_report is due then; UINT64_MAX: there is none to report */
	struct detached *detached, *leaving, *ended; /* sessions without a connection (resume/detached.h) */
	struct call *followed;			     /* what may run for long */
	struct call *spare;			     /* a pool */
	struct operate *spare_operations;	     /* another one */
	unsigned n_spare, n_spare_operations;
	struct npumem_error error; /* why the request that is worked on is refused; clear between turns */
	struct call *arriving;	   /* of the message that is being received; NULL: it has ended */
	struct fair_work line;	   /* queued: the waiting allocations are not tried before its turn */
};

enum { ENDING_PART = 128 }; /* tensors */

/* The end of a peer whose calls are all over (calls/ending.h). Part of the peer, so that its end takes no memory.
 * Zero at first. */
struct ending {
	struct scheduler_entry entry; /* first, so that the one is the other */
	struct rpc *rpc;
	struct rpc_peer *peer;
	struct claim claim;
	bool is_final;			     /* the session does not stay without its connection */
	bool has_begun;			     /* and needs no share of the disk's round any more */
	void (*step)(struct ending *ending); /* what is due next of the part; NULL: something else is awaited */
	size_t n;
	struct tensor *tensors[ENDING_PART];
	struct tensors_free freeing;
};

/* The other end of a connection. The caller owns the storage. None of its functions may call rpc back. */
struct rpc_peer {
	struct session *session;
	/* Some delimited Responses; takes the buffer's bytes, or leaves them. */
	void (*deliver)(void *ctx, struct buffer *reply);
	/* Sends what was delivered so far; whether the client's socket has all of it. NULL: it always has. */
	bool (*send)(void *ctx);
	/* Whether events have to wait, as the client does not read; then rpc_peer_ready when it has. NULL: never.
	 */
	bool (*is_behind)(void *ctx);
	/* After rpc_peer_close: nothing runs for the session any more, and it must end now. The storage of the
	 * peer stays until the call that led here has returned. */
	void (*drained)(void *ctx);
	void *ctx;

	/* rpc's own; zero at first. */
	struct rpc *rpc;
	struct call *calls;	    /* unfinished, the latest first */
	struct call *first_held;    /* at its gate, in the order sent */
	struct list *lists;	    /* that it keeps (lists.h) */
	struct call *next_to_close; /* the peer is closed: calls from here on are not dropped or cancelled yet */
	unsigned n_calls;
	unsigned n_arrived;		      /* of them: not at the gate, nor in line for room */
	unsigned n_shut;		      /* of those: what is sent after them waits at the gate */
	size_t call_bytes;		      /* that they hold */
	struct ids unsent;		      /* answered since all answers had gone (resume/repeat.h) */
	struct events_subscriber *subscriber; /* NULL: wants no events */
	bool is_stateless;		      /* a crash cannot undo what is delivered now */
	bool is_closing;
	struct rpc_peer *
		*waits_in; /* the list of its user in which it is: first_full or first_unshared; NULL: none */
	bool is_woken;	   /* it is in none any longer, and has had no turn since */
	struct rpc_peer *next_waiting, *prev_waiting;
	struct fair_work turn; /* held calls may be resolved, or the peer may end */
	struct ending ending;
};

/* Leaves work(arg), and then done(arg), to a thread as the executor does. False: there is none for it, and the
 * caller does both. */
static inline bool rpc_submit(const struct rpc *rpc, struct limits_user *user, bool waits, void (*work)(void *arg),
			      void (*done)(void *arg), void *arg)
{
	return rpc->executor.submit && !rpc->executor.submit(rpc->executor.ctx, user, waits, work, done, arg);
}

/* Whether a loop runs the work that is queued in service->queue; else all of it is run at once. */
static inline bool rpc_has_loop(const struct rpc *rpc)
{
	return rpc->service->queue.wake;
}
/* Of trying, admitting or dropping one request after the other: each may take a good part of a millisecond. By the
 * clock, as what a request is expected to cost has been wrong by a factor of a thousand. */
enum { RPC_SPELL_NS = 100000 };
/* When the rest is to be left to another turn. Where there is no other turn everything is done in this one. */
static inline uint64_t rpc_spell_end(const struct rpc *rpc)
{
	return rpc_has_loop(rpc) ? rpc->now_ns() + RPC_SPELL_NS : UINT64_MAX;
}
static inline bool rpc_spell_is_over(const struct rpc *rpc, uint64_t end_ns)
{
	return end_ns != UINT64_MAX && rpc->now_ns() >= end_ns;
}
/* The loop has waited, or something was done that takes time: what the clock said is no longer good. */
static inline void rpc_clock_passed(struct rpc *rpc)
{
	rpc->clock_ns = 0;
}
/* The time of the last reading of the clock: late by the work since then, which is short. */
static inline uint64_t rpc_clock(struct rpc *rpc)
{
	if (!rpc->keeps_clock || !rpc->clock_ns)
		rpc->clock_ns = rpc->now_ns();
	return rpc->clock_ns;
}

/* Queues the peer: what waits at its gate arrives in its turn, as far as it may; or the peer may end. */
static inline void rpc_wake(struct rpc *rpc, struct rpc_peer *peer)
{
	peer->rpc = rpc;
	peer->turn.run = rpc->run_peer;
	fair_queue_add(&rpc->service->queue, &peer->session->user->loop, &peer->turn);
}

#endif
