/* Rows and increments. Invariant: a row in the list has sessions, or is one of the METRICS_UIDS_IDLE_MAX latest
 * that have none. Decides nothing, and is never asked by what decides. */
#include "daemon/service/metrics.h"

#include <assert.h>

void metrics_init(struct metrics *metrics, const struct heap *heap)
{
	*metrics = (struct metrics){.heap = heap};
}

void metrics_deinit(struct metrics *metrics)
{
	while (metrics->uids) {
		struct metrics_uid *row = metrics->uids;

		assert(!row->n_sessions);
		metrics->uids = row->next;
		heap_free(metrics->heap, row);
	}
}

struct metrics_uid *metrics_enter(struct metrics *metrics, uint32_t uid)
{
	struct metrics_uid *row = NULL;

	metrics->sessions++;
	for (struct metrics_uid **at = &metrics->uids; *at && !row; at = row ? at : &(*at)->next)
		if ((*at)->uid == uid) {
			row = *at;
			*at = row->next;
		}
	if (!row)
		row = heap_zalloc(metrics->heap, 1, sizeof(*row));
	if (!row) {
		metrics->other.n_sessions++;
		return &metrics->other;
	}
	row->uid = uid;
	row->n_sessions++;
	row->next = metrics->uids;
	metrics->uids = row;
	return row;
}

void metrics_leave(struct metrics *metrics, struct metrics_uid *row)
{
	struct metrics_uid **oldest = NULL;
	unsigned n = 0;

	if (--row->n_sessions)
		return;
	for (struct metrics_uid **at = &metrics->uids; *at; at = &(*at)->next)
		if (!(*at)->n_sessions) {
			oldest = at;
			n++;
		}
	if (n <= METRICS_UIDS_IDLE_MAX)
		return;
	row = *oldest;
	*oldest = row->next;
	heap_free(metrics->heap, row);
}

unsigned metrics_bucket(uint64_t ns)
{
	uint64_t us = ns / 1000;
	unsigned bucket = us ? 64 - (unsigned)__builtin_clzll(us) : 0;

	return bucket < METRICS_BUCKETS ? bucket : METRICS_BUCKETS - 1;
}

static void count(struct metrics_usage *usage, const struct metrics_event *event)
{
	usage->requests++;
	usage->errors += event->status != 0;
	usage->bytes_in += event->bytes_in;
	usage->bytes_out += event->bytes_out;
}

void metrics_count(struct metrics *metrics, struct metrics_uid *row, struct metrics_usage *session,
		   const struct metrics_event *event)
{
	struct metrics_call *call = &metrics->calls[event->call];

	assert(event->call < METRICS_CALLS_MAX && event->status >= 0 && event->status < METRICS_STATUSES);
	call->statuses[event->status]++;
	call->buckets[metrics_bucket(event->ns)]++;
	call->total_ns += event->ns;
	count(&metrics->total, event);
	count(&row->usage, event);
	count(session, event);
}

void metrics_flight(struct metrics *metrics, struct metrics_uid *row, struct metrics_usage *session, bool begins)
{
	uint64_t change = begins ? 1 : UINT64_MAX;

	metrics->total.in_flight += change;
	row->usage.in_flight += change;
	session->in_flight += change;
}

static uint64_t elements(const struct op *op)
{
	int64_t all = npumem_place_elements(&op->tensor->place);

	if (op->kind != OP_WRITE && op->kind != OP_READ)
		return (uint64_t)all;
	return (uint64_t)(op->count < 0 ? all - op->first : op->count);
}

void metrics_op(struct metrics *metrics, const struct op *op)
{
	struct metrics_activity *activity = &metrics->activity;

	activity->saturated += (uint64_t)op->counts.saturated;
	activity->wrapped += (uint64_t)op->counts.wrapped;
	activity->macs += (uint64_t)op->counts.macs;
	for (unsigned i = 0; i < op->n_destroyed; i++)
		activity->destroyed_bytes += (uint64_t)op->destroyed[i].total_bytes;
	if (op->kind == OP_RUN)
		activity->kernels++;
	else
		activity->dma_bytes += elements(op) * npumem_dtype_bytes(op->tensor->place.dtype);
}

void metrics_turn(struct metrics *metrics, uint64_t ns, uint64_t cpu_ns)
{
	struct metrics_loop *loop = &metrics->loop;

	loop->turns++;
	loop->buckets[metrics_bucket(ns)]++;
	loop->total_ns += ns;
	if (loop->is_reset)
		ns = cpu_ns = loop->longest_ns = loop->longest_cpu_ns = 0;
	loop->is_reset = false;
	if (ns > loop->longest_ns)
		loop->longest_ns = ns;
	if (cpu_ns > loop->longest_cpu_ns)
		loop->longest_cpu_ns = cpu_ns;
}

void metrics_loop_reset(struct metrics *metrics)
{
	metrics->loop.is_reset = true;
}
