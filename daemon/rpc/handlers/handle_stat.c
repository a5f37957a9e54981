/* How the device is used, and by whom. Rows are appended one by one: the room for all is reserved before. */
#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/handlers/running.h"

enum {
	STAT_ALL = 56, /* fields of Stat */
	STAT_UIDS = 57,
	STAT_CLIENTS = 58,
	STAT_CALLS = 59,
	STAT_RUNNING = 63,
	USAGE_BYTES = 160, /* bounds, with tag and length */
	NUMBER_BYTES = 10,
	CALL_BYTES = 64 + (METRICS_STATUSES + METRICS_BUCKETS) * NUMBER_BYTES,
	REST_BYTES = 512 + METRICS_BUCKETS * NUMBER_BYTES,
	STEP_TENSORS = 256, /* to look at in one turn of the loop */
	STEPS_LEAST = 1000,
	STEP_BYTES = 4096, /* of an NPU that a step counts at least, where nobody changes anything */
};

static bool sees_uid(const struct session *session, uint32_t uid)
{
	return session_is_admin(session) || session->uid == uid;
}

static void fill_device(const struct service *service, Npumem__V1__Stat *message)
{
	struct device_counts stat;

	device_stat(service->device, &stat);
	message->total = stat.total;
	message->data = stat.data;
	message->dummy = stat.dummy;
	message->padding = stat.padding;
	message->empty = stat.empty;
	message->free = stat.free;
	message->lent = stat.lent;
	message->largest_free = stat.largest_free;
	message->tensors = stat.tensors;
	message->views = stat.views;
	message->sessions = (int64_t)service->n_sessions;
	message->packs = stat.packs;
}

static void fill_activity(const struct metrics_activity *from, Npumem__V1__Activity *to)
{
	to->dma_bytes = from->dma_bytes;
	to->kernels = from->kernels;
	to->macs = from->macs;
	to->saturated = from->saturated;
	to->wrapped = from->wrapped;
	to->destroyed_bytes = from->destroyed_bytes;
}

static void add_usage(struct reply *reply, unsigned field, Npumem__V1__Usage *row,
		      const struct metrics_usage *usage)
{
	row->requests = usage->requests;
	row->errors = usage->errors;
	row->bytes_in = usage->bytes_in;
	row->bytes_out = usage->bytes_out;
	row->in_flight = usage->in_flight;
	reply_message(reply, field, &row->base);
}

static void add_rows(struct call *call)
{
	const struct session *asking = call->session;
	const struct service *service = asking->service;
	const struct limits_table *limits = &service->limits;

	add_usage(&call->reply, STAT_ALL,
		  &(Npumem__V1__Usage){PROTOBUF_C_MESSAGE_INIT(&npumem__v1__usage__descriptor),
				       .sessions = service->metrics.sessions,
				       .device_bytes = (int64_t)limits->now[LIMITS_DEVICE_BYTES],
				       .tensors = (int64_t)limits->now[LIMITS_TENSORS],
				       .packs = device_packs_bytes(service->device)},
		  &service->metrics.total);
	for (const struct limits_user *user = limits->users; user; user = user->next)
		if (sees_uid(asking, user->uid) && (user->now[LIMITS_SESSIONS] || user->usage.requests))
			add_usage(&call->reply, STAT_UIDS,
				  &(Npumem__V1__Usage){PROTOBUF_C_MESSAGE_INIT(&npumem__v1__usage__descriptor),
						       .uid = user->uid, .sessions = user->now[LIMITS_SESSIONS],
						       .device_bytes = (int64_t)user->now[LIMITS_DEVICE_BYTES],
						       .tensors = (int64_t)user->now[LIMITS_TENSORS],
						       .packs = (int64_t)user->packs.bytes},
				  &user->usage);
	for (const struct session *session = service->sessions; session; session = session->next)
		if (sees_uid(asking, session->uid))
			add_usage(&call->reply, STAT_CLIENTS,
				  &(Npumem__V1__Usage){PROTOBUF_C_MESSAGE_INIT(&npumem__v1__usage__descriptor),
						       .uid = session->uid, .session = session->id,
						       .pid = (uint32_t)session->pid,
						       .device_bytes = (int64_t)session->unnamed->device_bytes,
						       .tensors = (int64_t)session->unnamed->n},
				  &session->usage);
}

static size_t without_zeros(const uint64_t *numbers, size_t n)
{
	while (n && !numbers[n - 1])
		n--;
	return n;
}

static void add_calls(struct call *call)
{
	struct metrics *metrics = &call->rpc->service->metrics;

	for (unsigned i = 0; i < CALL_METHODS; i++) {
		Npumem__V1__CallStat row = NPUMEM__V1__CALL_STAT__INIT;
		struct metrics_call *from = &metrics->calls[i];

		row.call = (char *)(uintptr_t)call_method_name(i);
		row.n_statuses = without_zeros(from->statuses, METRICS_STATUSES);
		row.statuses = from->statuses;
		row.n_buckets = without_zeros(from->buckets, METRICS_BUCKETS);
		row.buckets = from->buckets;
		row.total_ns = from->total_ns;
		if (row.n_statuses)
			reply_message(&call->reply, STAT_CALLS, &row.base);
	}
}

static void fill_loop(struct metrics_loop *from, Npumem__V1__LoopStat *to)
{
	to->turns = from->turns;
	to->total_ns = from->total_ns;
	to->n_buckets = without_zeros(from->buckets, METRICS_BUCKETS);
	to->buckets = from->buckets;
	to->longest_ns = from->longest_ns;
	to->longest_cpu_ns = from->longest_cpu_ns;
}

static size_t bound(const struct service *service, size_t n_npus)
{
	size_t rows = 1 + service->n_sessions;

	for (const struct limits_user *user = service->limits.users; user; user = user->next)
		rows++;
	return rows * USAGE_BYTES + RUNNING_MOST * RUNNING_BYTES + CALL_METHODS * CALL_BYTES +
	       n_npus * NUMBER_BYTES + REST_BYTES;
}

static int answer(struct call *call, const Npumem__V1__StatRequest *request)
{
	struct service *service = call->rpc->service;
	size_t n_npus = (size_t)device_options(service->device)->geometry.n_npus, bytes, mark;
	Npumem__V1__Stat message = NPUMEM__V1__STAT__INIT;
	Npumem__V1__Activity activity = NPUMEM__V1__ACTIVITY__INIT;
	Npumem__V1__LoopStat loop = NPUMEM__V1__LOOP_STAT__INIT;
	int status;

	fill_device(service, &message);
	if (!request->details) {
		status = reply_result(&call->reply, NPUMEM__V1__RESPONSE__RESULT_STAT, &message.base, call->error);
		if (!status && request->reset)
			metrics_loop_reset(&service->metrics);
		return status;
	}
	bytes = bound(service, n_npus);
	status = reply_reserve(&call->reply, bytes + REPLY_TAG_BYTES, call->error);
	if (status)
		return status;
	message.npu_data = heap_zalloc(call->rpc->heap, n_npus, sizeof(*message.npu_data));
	if (!message.npu_data)
		return heap_exhausted(call->error);
	message.n_npu_data = n_npus;
	device_npus(service->device, message.npu_data);
	fill_activity(&service->metrics.activity, &activity);
	message.activity = &activity;
	fill_loop(&service->metrics.loop, &loop);
	message.loop = &loop;
	message.now_ns = call->rpc->now_ns ? call->rpc->now_ns() : 0;
	mark = reply_open(&call->reply, NPUMEM__V1__RESPONSE__RESULT_STAT, bytes);
	reply_fields(&call->reply, &message.base);
	add_rows(call);
	add_calls(call);
	running_tell(call, STAT_RUNNING);
	reply_close(&call->reply, mark, bytes);
	heap_free(call->rpc->heap, message.npu_data);
	if (request->reset)
		metrics_loop_reset(&service->metrics);
	return 0;
}

/* What is left to count is counted a part at a time. Others may change it as fast, so at some point the rest is
 * counted at once, which by then is little. */
struct counting {
	const Npumem__V1__StatRequest *request;
	unsigned steps;
};

static int count(struct call *call, void *arg)
{
	struct counting *counting = arg;
	int status;

	if (counting->steps-- && !device_stat_count(call->rpc->service->device, STEP_TENSORS))
		return call_pause(call, count, counting);
	status = answer(call, counting->request);
	heap_free(call->rpc->heap, counting);
	return status;
}

int handle_device_stat(struct call *call, const Npumem__V1__StatRequest *request)
{
	int64_t npu_bytes = device_options(call->rpc->service->device)->geometry.npu_bytes;
	struct counting *counting;

	if (request->reset && !session_is_admin(call->session))
		return npumem_error_set(call->error, NPUMEM_PERMISSION_DENIED,
					"uid %u may not reset what others look at: only root and the daemon's uid",
					(unsigned)call->session->uid);
	if (device_stat_count(call->rpc->service->device, STEP_TENSORS))
		return answer(call, request);
	counting = heap_alloc(call->rpc->heap, sizeof(*counting));
	if (!counting)
		return heap_exhausted(call->error);
	*counting = (struct counting){request, STEPS_LEAST + (unsigned)(npu_bytes / STEP_BYTES)};
	return count(call, counting);
}
