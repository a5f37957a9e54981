/* How the device is used, and by which users. Each client learns how full the device is, and the requests and
 * operations of its own user; root and the daemon's uid learn those of all users. Room for all rows is reserved
 * first, then they are appended one by one. If there are many sessions, each turn of the loop appends some. */
#include "daemon/rpc/calls/perform.h"
#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/handlers/operations/progress.h"

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
	STEP_TENSORS = 512, /* to count in one turn of the loop */
	STEP_SESSIONS = 256,
	COUNT_NS = 250000000, /* in all: each caller pays for counting the tensors of all users */
};

/* What the asking session may know of what was asked and done. */
static struct metrics_account *account_of(const struct session *asking)
{
	return session_is_admin(asking) ? &asking->service->metrics.all : &asking->user->account;
}

static void fill_device(const struct session *asking, bool is_counted, Npumem__V1__Stat *message)
{
	const struct service *service = asking->service;
	const struct limits_user *user = asking->user;
	bool is_admin = session_is_admin(asking);
	struct device_counts stat;

	if (is_counted)
		device_stat(service->device, &stat);
	else
		device_stat_uncounted(service->device, &stat);
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
	message->sessions = (int64_t)(is_admin ? service->n_sessions : user->now[LIMITS_SESSIONS]);
	message->uncounted = stat.uncounted;
	message->packs = is_admin ? stat.packs : (int64_t)user->packs.bytes;
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

static void add_all(struct call *call, int64_t packs)
{
	const struct session *asking = call->session;
	const struct metrics_account *account = account_of(asking);
	const uint64_t *now = session_is_admin(asking) ? asking->service->limits.now : asking->user->now;

	add_usage(&call->reply, STAT_ALL,
		  &(Npumem__V1__Usage){PROTOBUF_C_MESSAGE_INIT(&npumem__v1__usage__descriptor),
				       .sessions = account->sessions,
				       .device_bytes = (int64_t)now[LIMITS_DEVICE_BYTES],
				       .tensors = (int64_t)now[LIMITS_TENSORS], .packs = packs},
		  &account->usage);
}

static void add_user(struct call *call, const struct limits_user *user)
{
	add_usage(&call->reply, STAT_UIDS,
		  &(Npumem__V1__Usage){PROTOBUF_C_MESSAGE_INIT(&npumem__v1__usage__descriptor), .uid = user->uid,
				       .sessions = user->now[LIMITS_SESSIONS],
				       .device_bytes = (int64_t)user->now[LIMITS_DEVICE_BYTES],
				       .tensors = (int64_t)user->now[LIMITS_TENSORS],
				       .packs = (int64_t)user->packs.bytes},
		  &user->account.usage);
}

static void add_users(struct call *call)
{
	const struct session *asking = call->session;

	if (!session_is_admin(asking)) {
		add_user(call, asking->user);
		return;
	}
	for (const struct limits_user *user = asking->service->limits.users; user; user = user->next)
		if (user->now[LIMITS_SESSIONS] || user->account.usage.requests)
			add_user(call, user);
}

static void add_session(struct call *call, const struct session *session)
{
	add_usage(&call->reply, STAT_CLIENTS,
		  &(Npumem__V1__Usage){PROTOBUF_C_MESSAGE_INIT(&npumem__v1__usage__descriptor),
				       .uid = session->uid, .session = session->id, .pid = (uint32_t)session->pid,
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
	struct metrics_account *account = account_of(call->session);

	for (unsigned i = 0; i < METHODS_N; i++) {
		Npumem__V1__CallStat row = NPUMEM__V1__CALL_STAT__INIT;
		struct metrics_call *from = &account->calls[i];

		row.call = (char *)(uintptr_t)methods_rows[i].name;
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
	to->longest_wait_ns = from->longest_wait_ns;
}

/* Data and dummies on each NPU, of all tensors or of the user's own. */
static void fill_npus(const struct session *asking, int64_t *npus)
{
	const struct service *service = asking->service;

	if (session_is_admin(asking))
		device_npus(service->device, npus);
	else
		totals_of_npus(&asking->user->totals, &device_options(service->device)->geometry, npus);
}

/* The answer with details; its sessions are appended in steps. */
struct answering {
	struct session_walk walk;
	struct progress_room running;
	size_t mark, bytes;
};

static size_t bound(const struct session *asking, size_t n_npus)
{
	const struct service *service = asking->service;
	size_t rows = 2 + asking->user->n_sessions;

	if (session_is_admin(asking)) {
		rows = 1 + service->n_sessions;
		for (const struct limits_user *user = service->limits.users; user; user = user->next)
			rows++;
	}
	return rows * USAGE_BYTES + PROGRESS_ROWS_MOST * PROGRESS_ROW_BYTES + METHODS_N * CALL_BYTES +
	       n_npus * NUMBER_BYTES + REST_BYTES;
}

static void reset_if_asked(struct call *call)
{
	if (call->request->stat->reset)
		metrics_loop_reset(&call->rpc->service->metrics);
}

static int end(struct call *call, struct answering *answering, int status)
{
	reply_close(&call->reply, answering->mark, answering->bytes);
	session_walk_end(&answering->walk);
	if (!status)
		reset_if_asked(call);
	heap_free(call->rpc->heap, answering);
	return status;
}

static int add_sessions(struct call *call)
{
	struct answering *answering = call->task;
	const struct session *session = NULL;

	for (unsigned i = 0; i < STEP_SESSIONS && (session = session_walk_next(&answering->walk)); i++) {
		add_session(call, session);
		progress_append(call, STAT_RUNNING, session, &answering->running);
	}
	if (!session)
		return end(call, answering, 0);
	if (call_is_cancelled(call))
		return end(call, answering,
			   npumem_error_set(call->error, NPUMEM_CANCELLED, "the stat was cancelled"));
	return perform_pause(call, add_sessions);
}

static int add_details(struct call *call, Npumem__V1__Stat *message)
{
	struct service *service = call->rpc->service;
	Npumem__V1__Activity activity = NPUMEM__V1__ACTIVITY__INIT;
	Npumem__V1__LoopStat loop = NPUMEM__V1__LOOP_STAT__INIT;

	message->npu_data = heap_zalloc(call->rpc->heap, message->n_npu_data, sizeof(*message->npu_data));
	if (!message->npu_data)
		return heap_exhausted(call->error);
	fill_npus(call->session, message->npu_data);
	fill_activity(&account_of(call->session)->activity, &activity);
	message->activity = &activity;
	/* The loop's turns are requests of all users. */
	if (session_is_admin(call->session)) {
		fill_loop(&service->metrics.loop, &loop);
		message->loop = &loop;
	}
	message->now_ns = call->rpc->now_ns();
	reply_fields(&call->reply, &message->base);
	add_all(call, message->packs);
	add_users(call);
	add_calls(call);
	heap_free(call->rpc->heap, message->npu_data);
	return 0;
}

static int answer_in_detail(struct call *call, Npumem__V1__Stat *message)
{
	struct answering *answering = heap_zalloc(call->rpc->heap, 1, sizeof(*answering));
	int status;

	if (!answering)
		return heap_exhausted(call->error);
	message->n_npu_data = (size_t)device_options(call->rpc->service->device)->geometry.n_npus;
	answering->running = (struct progress_room){PROGRESS_ROWS_MOST, PROGRESS_CALLS_MOST};
	answering->bytes = bound(call->session, message->n_npu_data);
	status = reply_reserve(&call->reply, answering->bytes + 2 * REPLY_TAG_BYTES, call->error);
	if (!status) {
		reply_expect(&call->reply, answering->bytes);
		answering->mark = reply_open(&call->reply, NPUMEM__V1__RESPONSE__RESULT_STAT, answering->bytes);
		status = add_details(call, message);
	}
	if (status) {
		heap_free(call->rpc->heap, answering);
		return status;
	}
	session_walk_begin(&answering->walk, call->session);
	call->task = answering;
	return add_sessions(call);
}

static int answer(struct call *call, bool is_counted)
{
	Npumem__V1__Stat message = NPUMEM__V1__STAT__INIT;
	int status;

	fill_device(call->session, is_counted, &message);
	if (call->request->stat->details)
		return answer_in_detail(call, &message);
	status = reply_result(&call->reply, NPUMEM__V1__RESPONSE__RESULT_STAT, &message.base, call->error);
	if (!status)
		reset_if_asked(call);
	return status;
}

/* Counts a part of the tensors in each step, until the clock says call->task. The next stat goes on where this one
 * ends. */
static int count(struct call *call)
{
	bool is_counted = device_stat_count(call->rpc->service->device, STEP_TENSORS);

	if (is_counted || call->rpc->now_ns() >= (uintptr_t)call->task)
		return answer(call, is_counted);
	return perform_pause(call, count);
}

int handle_device_stat(struct call *call)
{
	if (call->request->stat->reset && !session_is_admin(call->session))
		return npumem_error_set(
			call->error, NPUMEM_PERMISSION_DENIED,
			"uid %u may not reset what other users read: only root and the daemon's uid",
			(unsigned)call->session->uid);
	call->task = (void *)(uintptr_t)(call->rpc->now_ns() + COUNT_NS);
	return count(call);
}
