/* Jobs that stand in line for room, and jobs that are no longer wanted. A job in line is out of the order: what
 * its client sends after it does not wait for it, so that a client can free what it waits for. Invariant:
 * job->is_waiting exactly while its waiter is in the service's line. */
#include "daemon/rpc/job.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

static struct job *job_of(struct waiter *waiter)
{
	return (struct job *)((char *)waiter - offsetof(struct job, waiter));
}

/* What was missing now stays in the message and the fields. */
static void say_never(struct job *job)
{
	struct npumem_error why = job->error;

	snprintf(job->error.message, sizeof(job->error.message),
		 "not even an empty device has room for this: %.400s", why.message);
}

bool job_wait(struct job *job)
{
	struct rpc *rpc = job->rpc;
	struct waiting *waiting = &rpc->service->waiting;
	const Npumem__V1__AllocRequest *request = job->request->alloc;
	bool was_empty = !waiting->first;

	if (job->call.turn != TENSORS_LAST || !tensors_lacked_room(&job->error))
		return false;
	if (!waiting_measure(rpc->service->device, rpc->requests, (unsigned)request->n_tensors, &job->waiter)) {
		say_never(job);
		return false;
	}
	job->waiter.user = job->call.session->user;
	job->waiter.deadline_ns =
		rpc->now_ns ? rpc->now_ns() + UINT64_C(1000000) * request->wait_ms : WAITING_NEVER;
	npumem_error_clear(&job->error);
	if (waiting_add(waiting, &job->waiter, &job->error))
		return false;
	/* It has just been tried. */
	if (was_empty)
		waiting_refused(rpc->service, &job->waiter);
	job->is_waiting = job->left_order = true;
	order_finish(&rpc->service->order, &job->entry);
	return true;
}

/* 0: granted. Else job->error says why not. */
static int try(struct job *job, enum tensors_turn turn)
{
	npumem_error_clear(&job->error);
	reply_drop(&job->call.reply);
	job->call.turn = turn;
	return job_unpack(job) ? call_dispatch(&job->call, job->request) : job->error.status;
}

/* ---- stints ---- */

/* Of trying one after the other, as each may take a good part of a millisecond of the loop. */
enum { STINT_TRIES = 16, STINT_NS = 250000, STINT_PAUSE_NS = 1000000 };

struct stint {
	uint64_t began_ns;
	unsigned n;
};

/* False: it is a pause. */
static bool stint_begin(struct rpc *rpc, struct stint *stint)
{
	*stint = (struct stint){.began_ns = rpc->now_ns ? rpc->now_ns() : 0};
	if (stint->began_ns < rpc->serve_ns)
		return false;
	rpc->serve_ns = 0;
	return true;
}

/* Where nothing would go on after a pause there is none. */
static bool stint_is_over(struct rpc *rpc, struct stint *stint)
{
	uint64_t now;

	if (!rpc->now_ns || !rpc->set_alarm)
		return false;
	now = rpc->now_ns();
	if (stint->n++ < STINT_TRIES && now - stint->began_ns < STINT_NS)
		return false;
	rpc->serve_ns = now + STINT_PAUSE_NS;
	return true;
}

/* ---- serving ---- */

static void end_served(struct job *job, int status)
{
	waiting_served(&job->rpc->service->waiting, &job->waiter);
	job->is_waiting = false;
	job_end(job, status);
}

uint64_t job_serve_due(const struct rpc *rpc)
{
	const struct service *service = rpc->service;
	uint64_t deadline, window_end;

	if (service->waiting.held)
		return WAITING_NEVER;
	if (service->waiting.first && rpc->serve_ns)
		return rpc->serve_ns;
	deadline = waiting_deadline(&service->waiting);
	window_end = waiting_window_end(service);
	return deadline < window_end ? deadline : window_end;
}

void job_serve(struct rpc *rpc)
{
	struct waiting *waiting = &rpc->service->waiting;
	struct waiter *waiter;
	struct stint stint;

	if (waiting->serving || waiting->held || !waiting->first || !stint_begin(rpc, &stint))
		return;
	waiting->serving = true;
	while ((waiter = waiting_next(rpc->service)) && !stint_is_over(rpc, &stint)) {
		struct job *job = job_of(waiter);
		int status = try(job, TENSORS_HEAD);

		if (!status || !tensors_lacked_room(&job->error))
			end_served(job, status);
		else
			waiting_refused(rpc->service, waiter);
	}
	waiting->serving = false;
}

/* What was missing stays in the message and the fields. */
static void say_deadline(struct job *job)
{
	struct npumem_error why = job->error;

	job->error.status = NPUMEM_DEADLINE_EXCEEDED;
	snprintf(job->error.message, sizeof(job->error.message), "waited %" PRIu32 " ms: %.400s",
		 job->request->alloc->wait_ms, why.message);
}

void job_expire(struct rpc *rpc)
{
	struct waiting *waiting = &rpc->service->waiting;
	uint64_t now = rpc->now_ns ? rpc->now_ns() : 0;
	struct waiter *waiter;
	struct stint stint;

	if (waiting->held || !stint_begin(rpc, &stint))
		return;
	waiting->serving = true;
	while (!waiting->held && (waiter = waiting_expired(waiting, now)) && !stint_is_over(rpc, &stint)) {
		struct job *job = job_of(waiter);
		bool has_turn = waiting_has_turn(rpc->service, waiter);
		int status = try(job, has_turn ? TENSORS_HEAD : TENSORS_LAST);

		if (!status || !tensors_lacked_room(&job->error)) {
			end_served(job, status);
			continue;
		}
		say_deadline(job);
		job_end(job, NPUMEM_DEADLINE_EXCEEDED);
	}
	waiting->serving = false;
}

struct job *job_find(const struct rpc_peer *peer, uint64_t id)
{
	struct job *job = peer->jobs;

	while (job && job->id != id)
		job = job->next;
	return job;
}

void job_cancel(struct rpc_peer *peer, uint64_t id)
{
	struct job *job = job_find(peer, id);

	if (!job)
		return;
	if (job->entry.started && !job->is_waiting) {
		atomic_store(&job->progress.cancelled, true);
		return;
	}
	npumem_error_clear(&job->error);
	job_end(job, npumem_error_set(&job->error, NPUMEM_CANCELLED, "request %" PRIu64 " was cancelled", id));
}

void rpc_peer_end_waiting(struct rpc *rpc, struct rpc_peer *peer)
{
	struct job *job = peer->jobs;

	(void)rpc;
	while (job && !peer->is_closing) {
		if (!job->is_waiting) {
			job = job->next;
			continue;
		}
		npumem_error_clear(&job->error);
		job_end(job, npumem_error_set(&job->error, NPUMEM_UNAVAILABLE, "the daemon is going down"));
		job = peer->jobs;
	}
}
