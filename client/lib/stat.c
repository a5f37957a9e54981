/* How the device is used, and by whom. The details come as one piece of memory, so that one free() is enough.
 * Invariant: what the daemon counts is copied, never used as a size or an index. */
#include <string.h>

#include "client/lib/call.h"
#include "client/lib/reply.h"

static int take_stat(struct call *call, const Npumem__V1__Response *response)
{
	reply_stat(response->stat, call->result);
	return 0;
}

static int ask(struct npumem *npumem, bool details, bool reset, struct call *call, struct npumem_error *error)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__StatRequest message = NPUMEM__V1__STAT_REQUEST__INIT;
	message.details = details;
	message.reset = reset;
	request.call_case = NPUMEM__V1__REQUEST__CALL_STAT;
	request.stat = &message;
	return call_run(npumem, &request, NPUMEM__V1__RESPONSE__RESULT_STAT, call, error);
}

int npumem_stat(struct npumem *npumem, struct npumem_stat *stat, struct npumem_error *error)
{
	struct call call = {.take = take_stat, .result = stat};
	return ask(npumem, false, false, &call, error);
}

/* ---- details ---- */

struct taken {
	const struct memory *memory;
	struct npumem_details *details;
};

static void take_usage(const Npumem__V1__Usage *from, struct npumem_usage *to)
{
	*to = (struct npumem_usage){
		.uid = from->uid,
		.pid = from->pid,
		.session = from->session,
		.requests = from->requests,
		.errors = from->errors,
		.bytes_in = from->bytes_in,
		.bytes_out = from->bytes_out,
		.in_flight = from->in_flight,
		.device_bytes = from->device_bytes,
		.tensors = from->tensors,
		.sessions = from->sessions,
	};
}

static void take_numbers(const uint64_t *from, size_t n, uint64_t *to, size_t most)
{
	memset(to, 0, most * sizeof(*to));
	if (n)
		memcpy(to, from, (n < most ? n : most) * sizeof(*to));
}

static void take_call(const Npumem__V1__CallStat *from, struct npumem_call_stat *to)
{
	reply_text(from->call, to->call, sizeof(to->call));
	take_numbers(from->statuses, from->n_statuses, to->statuses, NPUMEM_STATUSES);
	take_numbers(from->buckets, from->n_buckets, to->buckets, NPUMEM_BUCKETS);
	to->total_ns = from->total_ns;
}

/* The numbers of rows are those of a message of at most 16 MiB, so the sizes cannot wrap. */
static struct npumem_details *details_new(const struct memory *memory, const Npumem__V1__Stat *stat)
{
	size_t n_usages = stat->n_uids + stat->n_clients;
	struct npumem_details *details = memory_alloc(
		memory, sizeof(*details) + stat->n_npu_data * sizeof(*details->npu_data) +
				n_usages * sizeof(*details->uids) + stat->n_calls * sizeof(*details->calls));
	if (!details)
		return NULL;
	memset(details, 0, sizeof(*details));
	details->n_npus = (unsigned)stat->n_npu_data;
	details->n_uids = (unsigned)stat->n_uids;
	details->n_clients = (unsigned)stat->n_clients;
	details->n_calls = (unsigned)stat->n_calls;
	details->npu_data = (int64_t *)(details + 1);
	details->uids = (struct npumem_usage *)(details->npu_data + details->n_npus);
	details->clients = details->uids + details->n_uids;
	details->calls = (struct npumem_call_stat *)(details->clients + details->n_clients);
	return details;
}

static void take_activity(const Npumem__V1__Activity *from, struct npumem_activity *to)
{
	if (from)
		*to = (struct npumem_activity){from->dma_bytes, from->kernels, from->macs,
					       from->saturated, from->wrapped, from->destroyed_bytes};
}

static void take_loop(const Npumem__V1__LoopStat *from, struct npumem_loop_stat *to)
{
	if (!from)
		return;
	to->turns = from->turns;
	to->total_ns = from->total_ns;
	to->longest_ns = from->longest_ns;
	to->longest_cpu_ns = from->longest_cpu_ns;
	take_numbers(from->buckets, from->n_buckets, to->buckets, NPUMEM_BUCKETS);
}

static int take_details(struct call *call, const Npumem__V1__Response *response)
{
	const Npumem__V1__Stat *stat = response->stat;
	struct taken *taken = call->result;
	struct npumem_details *details = taken->details = details_new(taken->memory, stat);
	if (!details)
		return 0;
	reply_stat(stat, &details->stat);
	take_activity(stat->activity, &details->activity);
	take_loop(stat->loop, &details->loop);
	if (stat->all)
		take_usage(stat->all, &details->all);
	details->now_ns = stat->now_ns;
	for (size_t i = 0; i < stat->n_npu_data; i++)
		details->npu_data[i] = stat->npu_data[i];
	for (size_t i = 0; i < stat->n_uids; i++)
		take_usage(stat->uids[i], &details->uids[i]);
	for (size_t i = 0; i < stat->n_clients; i++)
		take_usage(stat->clients[i], &details->clients[i]);
	for (size_t i = 0; i < stat->n_calls; i++)
		take_call(stat->calls[i], &details->calls[i]);
	return 0;
}

static int ask_details(struct npumem *npumem, bool reset, struct npumem_details **details,
		       struct npumem_error *error)
{
	struct taken taken = {.memory = npumem->memory};
	struct call call = {.take = take_details, .result = &taken};
	*details = NULL;
	int status = ask(npumem, true, reset, &call, error);
	if (status)
		return status;
	*details = taken.details;
	return taken.details ? 0
			     : npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
						"no memory in this process for the details");
}

int npumem_stat_details(struct npumem *npumem, struct npumem_details **details, struct npumem_error *error)
{
	return ask_details(npumem, false, details, error);
}

int npumem_stat_reset(struct npumem *npumem, struct npumem_details **details, struct npumem_error *error)
{
	return ask_details(npumem, true, details, error);
}
