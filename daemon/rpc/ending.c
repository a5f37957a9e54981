/* A part stands in the order of operations like a write of all its tensors' bytes. It keeps handles, as a view may
 * go with its base, which can be another's, while the part waits. Invariant: peer->drained is called exactly once,
 * when no part is left. */
#include "daemon/rpc/ending.h"

#include <stddef.h>

#include "daemon/rpc/job.h"
#include "daemon/rpc/later.h"
#include "daemon/rpc/touch.h"

enum { PART_TENSORS = 256 };

struct ending_part {
	size_t n;
	uint64_t handles[PART_TENSORS];
	struct tensor *tensors[PART_TENSORS];
	size_t n_tensors; /* of those that are there, but for views */
	struct touch touch;
};

static void end_part(struct rpc_peer *peer);

static struct rpc_peer *peer_of(struct order_entry *entry)
{
	return (struct rpc_peer *)((char *)entry - offsetof(struct rpc_peer, ending));
}

static void drained(struct rpc_peer *peer)
{
	struct rpc *rpc = peer->rpc;

	heap_free(rpc->heap, peer->part);
	peer->part = NULL;
	peer->drained(peer->ctx);
	rpc_settle(rpc);
}

/* Without memory to do it in parts: after everything, at once. */
static void start_whole(struct order_entry *entry)
{
	struct rpc_peer *peer = peer_of(entry);

	struct rpc *rpc = peer->rpc;

	peer->drained(peer->ctx);
	order_finish(&rpc->service->order, entry);
	rpc_settle(rpc);
}

static void look(struct order_entry *entry)
{
	struct rpc_peer *peer = peer_of(entry);
	struct ending_part *part = peer->part;

	touch_begin(&part->touch);
	part->n_tensors = 0;
	for (size_t i = 0; i < part->n; i++) {
		struct tensor *tensor = device_find(peer->rpc->service->device, part->handles[i]);

		if (!tensor)
			continue;
		touch_whole(tensor, &part->touch);
		if (!tensor->base)
			part->tensors[part->n_tensors++] = tensor;
	}
	entry->accesses = part->touch.accesses;
	entry->n_accesses = part->touch.n_accesses;
}

static void forget(void *arg)
{
	struct rpc_peer *peer = arg;

	for (size_t i = 0; i < peer->part->n_tensors; i++)
		device_forget(peer->rpc->service->device, peer->part->tensors[i]);
}

static void on_forgotten(void *arg)
{
	struct rpc_peer *peer = arg;

	session_release(peer->session, peer->part->handles, peer->part->n);
	order_finish(&peer->rpc->service->order, &peer->ending);
	end_part(peer);
}

static void start_part(struct order_entry *entry)
{
	struct rpc_peer *peer = peer_of(entry);
	struct ending_part *part = peer->part;
	int64_t cost = 0;

	for (size_t i = 0; i < part->n_tensors; i++)
		cost += device_forget_cost(part->tensors[i]);
	/* Between full parts, too, the loop sees to others. */
	if ((later_is_long(cost) || part->n == PART_TENSORS) &&
	    job_submit_work(peer->rpc, peer->session->uid, forget, on_forgotten, peer))
		return;
	forget(peer);
	on_forgotten(peer);
}

/* The next part, or the end. */
static void end_part(struct rpc_peer *peer)
{
	struct ending_part *part = peer->part;
	const struct record *record = peer->session->anonymous;

	if (!record) {
		drained(peer);
		return;
	}
	for (part->n = 0; record && part->n < PART_TENSORS; record = record->next)
		part->handles[part->n++] = record->tensor->handle;
	peer->ending = (struct order_entry){.start = start_part, .refresh = look};
	look(&peer->ending);
	order_add(&peer->rpc->service->order, &peer->ending);
}

void ending_begin(struct rpc *rpc, struct rpc_peer *peer)
{
	if (peer->is_drained)
		return;
	peer->is_drained = true;
	peer->rpc = rpc;
	if (peer->session->anonymous)
		peer->part = heap_alloc(rpc->heap, sizeof(*peer->part));
	if (peer->part || !peer->session->anonymous) {
		end_part(peer);
		return;
	}
	peer->ending = (struct order_entry){.start = start_whole, .barrier = true};
	order_add(&rpc->service->order, &peer->ending);
}

void rpc_peer_close(struct rpc *rpc, struct rpc_peer *peer)
{
	struct job *job = peer->jobs;

	peer->is_closing = true;
	if (peer->subscriber)
		events_unsubscribe(rpc->service, peer->subscriber);
	peer->subscriber = NULL;
	/* Held while jobs are dropped, so that the last of them does not end the session under this loop; one that
	 * is dropped may take others with it, so it begins anew. */
	peer->n_jobs++;
	while (job) {
		if (job->entry.started && !job->is_waiting) {
			atomic_store(&job->progress.cancelled, true);
			job = job->next;
		} else {
			job_drop(job);
			job = peer->jobs;
		}
	}
	if (!--peer->n_jobs)
		ending_begin(rpc, peer);
}
