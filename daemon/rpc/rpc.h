/* Requests to replies: bytes in, bytes out. Knows messages and the service, no sockets and no loop.
 * Nothing a client sends can do more than be answered with a status, and nothing half-done stays behind one. */
#ifndef RPC_RPC_H
#define RPC_RPC_H

#include "daemon/rpc/calls/buffer.h"
#include "daemon/rpc/calls/ending.h"
#include "daemon/service/session.h"
#include "daemon/service/tensors.h"

struct absent;
struct call;
struct list;
struct operate;

/* An answered request, for whoever looks on. */
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
	 * there is more work than threads. 0; -ENOMEM: neither will be called. */
	int (*submit)(void *ctx, struct limits_user *user, void (*work)(void *arg), void (*done)(void *arg),
		      void *arg);
	/* Takes back what was submitted for that user with that arg, on the thread that called. True: it had not
	 * begun, and neither will be called; false: it has, or is not there. NULL: nothing can be taken back. */
	bool (*withdraw)(void *ctx, struct limits_user *user, void *arg);
	void *ctx;
};

/* One per daemon: what all requests use in turn, so that an ordinary one takes no memory from the heap. */
struct rpc {
	struct service *service;
	const struct heap *heap;
	void (*answered)(const struct rpc_answer *answer); /* told of each; NULL: nobody looks on */
	struct rpc_executor executor; /* submit NULL: there are no threads, and everything runs at once */
	uint64_t (*now_ns)(void);     /* a monotonic clock, for any thread; NULL: no times are told */
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
	bool keeps_clock;  /* a reading is good until rpc_clock_passed: within a turn of the loop */
	uint64_t clock_ns; /* the latest reading; 0: there is none */
	uint64_t alarm_ns; /* that was asked for */
	uint64_t send_ns;  /* no more events before then; 0: there are none that wait */
	uint64_t look_ns;  /* whose progress is to be told is looked for then; UINT64_MAX: there is none */
	struct absent *absent, *leaving, *spent; /* sessions without a connection (resume/absent.h) */
	struct call *followed;			 /* what may run for long */
	struct call *spare;			 /* a pool */
	struct operate *spare_operations;	 /* another one */
	unsigned n_spare, n_spare_operations;
	struct npumem_error error; /* why the request that is worked on is refused; clear between turns */
	struct call *arriving;	   /* of the message that is being received; NULL: it has ended */
	struct call *searching; /* first in line, and in the order while a place over others is searched for it */
	struct fair_work line;	/* queued: the waiting allocations are not tried before its turn */
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
	struct call *calls; /* unfinished, the latest first */
	struct call *first_held, *last_held;
	struct list *lists;	    /* that it keeps (lists.h) */
	struct call *next_to_close; /* the peer is closed: calls from here on are not dropped or cancelled yet */
	unsigned n_calls;
	unsigned n_arrived;		      /* of them: not at the gate, nor in line for room */
	unsigned n_shut;		      /* of those: what is sent after them waits at the gate */
	size_t call_bytes;		      /* that they hold */
	struct ids unsent;		      /* answered since all answers had gone (resume/repeat.h) */
	struct events_subscriber *subscriber; /* NULL: wants no events */
	bool is_stateless;		      /* what is delivered now tells of nothing that could be lost */
	bool is_closing;
	bool is_full;  /* in its user's list of peers whose requests wait for fewer accesses */
	bool is_woken; /* it is no longer, and has had no turn since */
	struct rpc_peer *next_full, *prev_full; /* there */
	struct fair_work turn;			/* held calls may be resolved, or the peer may end */
	struct ending ending;
};

/* `service` and `heap` outlive it. */
void rpc_init(struct rpc *rpc, struct service *service, const struct heap *heap);
/* Sessions that wait for their clients are left in the store. */
void rpc_deinit(struct rpc *rpc);

/* Before anything is received, with the clock set: has the service as its store was left (service/kept/recover.h),
 * whose sessions wait for their clients from now on. 0 or -errno. */
int rpc_recover(struct rpc *rpc, const struct store_report *found,
		void (*say)(void *ctx, bool is_loss, const char *line), void *ctx);

/* Takes one message (without its length), which is the caller's: answered by peer->deliver, before this returns or
 * later. Whatever the message is, the connection can go on. 0; -ENOMEM: not even an error could be written, and
 * nothing was done. */
int rpc_receive(struct rpc *rpc, struct rpc_peer *peer, const uint8_t *message, size_t bytes);
/* The same for a message from rpc->heap, which is rpc's from now on. */
int rpc_receive_owned(struct rpc *rpc, struct rpc_peer *peer, uint8_t *message, size_t bytes);

/* Whether a loop runs the work that is queued in service->queue; else all of it is run at once. */
static inline bool rpc_has_loop(const struct rpc *rpc)
{
	return rpc->service->queue.wake;
}
/* After work of service->queue was run: tries waiting allocations, sends events, sets the alarm. */
void rpc_settle(struct rpc *rpc);

/* Answers a message of which only the beginning came, in `head`, and nothing more will: with `error`, and the id
 * that the beginning tells. 0 or -ENOMEM. */
int rpc_refuse_part(struct rpc *rpc, struct rpc_peer *peer, const struct npumem_error *error, const uint8_t *head,
		    size_t bytes);

/* The client is gone: what waits is dropped, what runs is stopped where it can be; nothing is delivered any more.
 * peer->drained is called once, at once or later. */
void rpc_peer_close(struct rpc *rpc, struct rpc_peer *peer);

/* All that was delivered is in the client's socket. */
void rpc_peer_sent(struct rpc_peer *peer);

/* The client has read. */
void rpc_peer_ready(struct rpc *rpc, struct rpc_peer *peer);

/* The daemon goes down: what waits for room is answered UNAVAILABLE (field: going_down). */
void rpc_peer_end_waiting(struct rpc *rpc, struct rpc_peer *peer);

/* The loop has waited, or something was done that takes time: what the clock said is no longer good. */
static inline void rpc_clock_passed(struct rpc *rpc)
{
	rpc->clock_ns = 0;
}
/* The time, as good as what is done without reading the clock is short; 0 where there is none. */
static inline uint64_t rpc_clock(struct rpc *rpc)
{
	if (rpc->now_ns && !(rpc->keeps_clock && rpc->clock_ns))
		rpc->clock_ns = rpc->now_ns();
	return rpc->clock_ns;
}

/* What is due by the clock. */
void rpc_tick(struct rpc *rpc);

/* Appends a Response with id 0: why a connection ends. 0 or -ENOMEM. */
int rpc_refuse(struct buffer *out, int status, const char *message);

#endif
