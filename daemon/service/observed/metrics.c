/* Increments only: no decision depends on these counters. */
#include "daemon/service/observed/metrics.h"

#include <assert.h>

unsigned metrics_bucket(uint64_t ns)
{
	uint64_t us = ns / 1000;
	unsigned bucket = us ? 64 - (unsigned)__builtin_clzll(us) : 0;

	return bucket < METRICS_BUCKETS ? bucket : METRICS_BUCKETS - 1;
}

static void count_usage(struct metrics_usage *usage, const struct metrics_event *event)
{
	usage->requests++;
	usage->errors += event->status != 0;
	usage->bytes_in += event->bytes_in;
	usage->bytes_out += event->bytes_out;
}

static void count_answer(struct metrics_account *account, const struct metrics_event *event)
{
	struct metrics_call *call = &account->calls[event->call];

	call->statuses[event->status]++;
	call->buckets[metrics_bucket(event->ns)]++;
	call->total_ns += event->ns;
	count_usage(&account->usage, event);
}

void metrics_count(struct metrics *metrics, struct metrics_account *user, struct metrics_usage *session,
		   const struct metrics_event *event)
{
	assert(event->call < METRICS_CALLS_MAX && event->status >= 0 && event->status < METRICS_STATUSES);
	count_answer(&metrics->all, event);
	count_answer(user, event);
	count_usage(session, event);
}

void metrics_flight(struct metrics *metrics, struct metrics_account *user, struct metrics_usage *session,
		    bool begins)
{
	uint64_t change = begins ? 1 : UINT64_MAX;

	metrics->all.usage.in_flight += change;
	user->usage.in_flight += change;
	session->in_flight += change;
}

static uint64_t elements(const struct op *op)
{
	int64_t all = tensor_elements(op->tensor);

	if (op->kind != OP_WRITE && op->kind != OP_READ)
		return (uint64_t)all;
	return (uint64_t)(op->count < 0 ? all - op->first : op->count);
}

static void count_op(struct metrics_activity *activity, const struct op *op)
{
	activity->saturated += (uint64_t)op->counts.saturated;
	activity->wrapped += (uint64_t)op->counts.wrapped;
	activity->macs += (uint64_t)op->counts.macs;
	for (unsigned i = 0; i < op->n_destroyed; i++)
		activity->destroyed_bytes += (uint64_t)op->destroyed[i].total_bytes;
	if (op->kind == OP_RUN)
		activity->kernels++;
	else
		activity->dma_bytes += elements(op) * npumem_dtype_bytes(tensor_dtype(op->tensor));
}

void metrics_op(struct metrics *metrics, struct metrics_account *user, const struct op *op)
{
	count_op(&metrics->all.activity, op);
	count_op(&user->activity, op);
}

void metrics_turn(struct metrics *metrics, uint64_t ns, uint64_t cpu_ns, uint64_t wait_ns)
{
	struct metrics_loop *loop = &metrics->loop;

	loop->turns++;
	loop->buckets[metrics_bucket(ns)]++;
	loop->total_ns += ns;
	if (loop->is_reset)
		ns = cpu_ns = wait_ns = loop->longest_ns = loop->longest_cpu_ns = loop->longest_wait_ns = 0;
	loop->is_reset = false;
	if (ns > loop->longest_ns)
		loop->longest_ns = ns;
	if (cpu_ns > loop->longest_cpu_ns)
		loop->longest_cpu_ns = cpu_ns;
	if (wait_ns > loop->longest_wait_ns)
		loop->longest_wait_ns = wait_ns;
}

void metrics_loop_reset(struct metrics *metrics)
{
	metrics->loop.is_reset = true;
}
