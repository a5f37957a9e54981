/* How the device is used, in all and by each uid and client.
 * Invariant: what the daemon counts is copied, never used as a size or an index. */
#include <string.h>

#include "client/lib/connection/engine/engine.h"
#include "client/lib/messages/message.h"
#include "client/lib/messages/reply.h"

static int take_stat(struct npumem_request *request, const Npumem__V1__Response *response,
		     struct npumem_error *error)
{
	struct npumem_stat *stat = result_take(request->results, sizeof(*stat));
	if (!stat)
		return request_no_memory(error);
	request->answer = stat;
	reply_stat(response->stat, stat);
	return 0;
}

/* ---- details ---- */

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
		.packs = from->packs,
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
	convert_text_from(from->call, to->call, sizeof(to->call));
	take_numbers(from->statuses, from->n_statuses, to->statuses, NPUMEM_STATUSES);
	take_numbers(from->buckets, from->n_buckets, to->buckets, NPUMEM_BUCKETS);
	to->total_ns = from->total_ns;
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
	to->longest_wait_ns = from->longest_wait_ns;
	take_numbers(from->buckets, from->n_buckets, to->buckets, NPUMEM_BUCKETS);
}

static void take_running(const Npumem__V1__Running *from, struct npumem_running *to)
{
	*to = (struct npumem_running){
		.session = from->session,
		.request = from->request_id,
		.uid = from->uid,
		.pid = from->pid,
		.since_ns = from->since_ns,
		.done = from->done,
		.total = from->total,
		.waits = from->waits,
	};
	convert_text_from(from->call, to->call, sizeof(to->call));
	convert_text_from(from->what, to->what, sizeof(to->what));
}

/* What the details consist of, to be filled. */
struct parts {
	struct npumem_stat *stat;
	struct npumem_activity *activity;
	struct npumem_loop_stat *loop;
	struct npumem_usage *all, **uids, **clients;
	struct npumem_call_stat **calls;
	struct npumem_running **running;
	int64_t *npu_data;
};

static bool take_parts(struct result *result, const Npumem__V1__Stat *stat, struct parts *parts)
{
	parts->stat = result_take(result, sizeof(*parts->stat));
	parts->activity = result_take(result, sizeof(*parts->activity));
	parts->loop = result_take(result, sizeof(*parts->loop));
	parts->all = result_take(result, sizeof(*parts->all));
	parts->uids = reply_rows(result, stat->n_uids, sizeof(**parts->uids));
	parts->clients = reply_rows(result, stat->n_clients, sizeof(**parts->clients));
	parts->calls = reply_rows(result, stat->n_calls, sizeof(**parts->calls));
	parts->running = reply_rows(result, stat->n_running, sizeof(**parts->running));
	parts->npu_data = result_array(result, stat->n_npu_data, sizeof(*parts->npu_data));
	return parts->stat && parts->activity && parts->loop && parts->all && parts->uids && parts->clients &&
	       parts->calls && parts->running && parts->npu_data;
}

static void fill_parts(const Npumem__V1__Stat *stat, const struct parts *parts)
{
	reply_stat(stat, parts->stat);
	take_activity(stat->activity, parts->activity);
	take_loop(stat->loop, parts->loop);
	if (stat->all)
		take_usage(stat->all, parts->all);
	for (size_t i = 0; i < stat->n_npu_data; i++)
		parts->npu_data[i] = stat->npu_data[i];
	for (size_t i = 0; i < stat->n_uids; i++)
		take_usage(stat->uids[i], parts->uids[i]);
	for (size_t i = 0; i < stat->n_clients; i++)
		take_usage(stat->clients[i], parts->clients[i]);
	for (size_t i = 0; i < stat->n_calls; i++)
		take_call(stat->calls[i], parts->calls[i]);
	for (size_t i = 0; i < stat->n_running; i++)
		take_running(stat->running[i], parts->running[i]);
}

static int take_details(struct npumem_request *request, const Npumem__V1__Response *response,
			struct npumem_error *error)
{
	const Npumem__V1__Stat *stat = response->stat;
	struct npumem_details *details = result_take(request->results, sizeof(*details));
	struct parts parts;
	if (!details || !take_parts(request->results, stat, &parts))
		return request_no_memory(error);
	fill_parts(stat, &parts);
	details->stat = parts.stat;
	details->activity = parts.activity;
	details->loop = parts.loop;
	details->all = parts.all;
	details->now_ns = stat->now_ns;
	details->n_npus = (unsigned)stat->n_npu_data;
	details->n_uids = (unsigned)stat->n_uids;
	details->n_clients = (unsigned)stat->n_clients;
	details->n_calls = (unsigned)stat->n_calls;
	details->npu_data = parts.npu_data;
	details->uids = (const struct npumem_usage *const *)parts.uids;
	details->clients = (const struct npumem_usage *const *)parts.clients;
	details->calls = (const struct npumem_call_stat *const *)parts.calls;
	details->n_running = (unsigned)stat->n_running;
	details->running = (const struct npumem_running *const *)parts.running;
	request->answer = details;
	return 0;
}

/* ---- asking ---- */

static int ask(struct npumem *npumem, const struct request_kind *kind, bool details, bool reset, NPUMEM_ASYNC)
{
	Npumem__V1__StatRequest stat = NPUMEM__V1__STAT_REQUEST__INIT;
	stat.details = details;
	stat.reset = reset;
	return request_call(npumem, kind, &MESSAGE_REQUEST(STAT, stat, &stat), NULL, callback, context, request,
			    error);
}

int npumem_stat_async(struct npumem *npumem, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {NPUMEM__V1__RESPONSE__RESULT_STAT, .take = take_stat};
	return ask(npumem, &kind, false, false, callback, context, request, error);
}

int npumem_stat_details_async(struct npumem *npumem, bool reset, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {NPUMEM__V1__RESPONSE__RESULT_STAT, .take = take_details};
	return ask(npumem, &kind, true, reset, callback, context, request, error);
}
