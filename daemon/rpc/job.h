/* Requests that do not end when they come: they wait for their turn in the order of operations, run on another
 * thread, or both. A job has its own copy of the message and its own reply. */
#ifndef RPC_JOB_H
#define RPC_JOB_H

#include "daemon/rpc/call.h"
#include "daemon/rpc/operate.h"
#include "daemon/service/order.h"

enum {
	/* About a tenth of a millisecond of work is done at once, in the loop: less than what a thread would cost.
	 */
	JOB_INLINE_COST = 200000,
};

struct submission;
struct touch;

struct job {
	struct order_entry entry; /* first, so that the one is the other */
	struct rpc *rpc;
	struct rpc_peer *peer;
	struct job *next, *prev; /* of the peer */
	uint64_t id;
	uint8_t *message;
	size_t bytes;
	size_t charge; /* what its message and its reply take of the peer's job_bytes */
	struct budget budget;
	const Npumem__V1__Request *request; /* unpacked again when its turn has come, but where it is kept */
	bool keeps_request, has_many_fields;
	struct call call;
	struct npumem_error error;
	struct prepare_op prepared;
	struct buffer out;
	struct operate operate;
	struct kernel_progress progress;
	int status;
	struct submission *submission; /* of a submit that has started */
	uint64_t look_ns;	       /* when its progress is told next; 0: never */
	struct waiter waiter;	       /* of an allocation: its place in the line */
	bool is_waiting;	       /* in that line */
	bool left_order;	       /* since it stood in line */
};

/* Whether a request cannot be answered at once: it is long, or something unfinished is in its way. Then `touch`
 * tells what it touches. */
bool job_is_needed(struct rpc *rpc, struct rpc_peer *peer, const Npumem__V1__Request *request,
		   struct touch *touch);

/* Takes a request, which may end before this returns. 0; RESOURCE_EXHAUSTED (a limit, told in rpc->error),
 * -ENOMEM: nothing happened. */
int job_new(struct rpc *rpc, struct rpc_peer *peer, const Npumem__V1__Request *request, const struct touch *touch,
	    const uint8_t *message, size_t bytes);

/* An unfinished request of a peer by its id, or NULL. */
struct job *job_find(const struct rpc_peer *peer, uint64_t id);
/* Ends it, now or as soon as it can be stopped; nothing where there is none. */
void job_cancel(struct rpc_peer *peer, uint64_t id);
/* Gives room that was freed to those who wait for it, in turn: a part of them where that takes long. */
void job_serve(struct rpc *rpc);
/* When it, or job_expire, is next due by the clock; WAITING_NEVER. */
uint64_t job_serve_due(const struct rpc *rpc);
/* Ends those whose deadline is over. */
void job_expire(struct rpc *rpc);
/* Puts an allocation in line that found no room; false where it does not want to wait, or must not. The job is
 * then out of the order. */
bool job_wait(struct job *job);
/* Unpacks its message again; NULL: no memory, and job->error says so. */
const Npumem__V1__Request *job_unpack(struct job *job);

/* Answers and frees a job that has started, waits for room, or is cancelled before it started. */
void job_end(struct job *job, int status);

/* A job that is in no list, with neither message nor request; NULL without memory. job_free gives it back. */
struct job *job_take(struct rpc *rpc, struct rpc_peer *peer, size_t bytes);
void job_free(struct job *job);
/* Whether the peer may have one more, of so many bytes: 0, or RESOURCE_EXHAUSTED in rpc->error. */
int job_check_limits(struct rpc *rpc, const struct rpc_peer *peer, size_t bytes);
/* Into the peer's books, charged for so many bytes. */
void job_enlist(struct job *job, size_t bytes);
/* Into the order, now that its kept request has been read. 0; RESOURCE_EXHAUSTED: nothing is charged for its
 * reply. */
int job_begin_read(struct job *job, const struct touch *touch);

/* Frees a job without an answer. */
void job_drop(struct job *job);

/* Work for another thread: work(arg) there, then done(arg) on the loop's; false: neither, as there is no thread.
 */
bool job_submit_work(struct rpc *rpc, uint32_t uid, void (*work)(void *arg), void (*done)(void *arg), void *arg);
/* Does the work of an op that was begun: on a thread where it is long and there are threads, else at once. Calls
 * done(arg) on the loop's thread, maybe before it returns. */
void job_work(const struct call *call, bool is_long, void (*work)(void *arg), void (*done)(void *arg), void *arg);

/* Starts a submit; it ends the job itself. */
void job_submit(struct job *job);
/* How far a submit that has started is, in operations, each of KERNEL_PARTS. */
void job_submit_progress(const struct job *job, uint64_t *done, uint64_t *total);

#endif
