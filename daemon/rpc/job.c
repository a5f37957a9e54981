/* A job's life: job_new, its turn (start), its work, job_end. The message is unpacked twice: once to see what it
 * touches, and again when its turn has come, as the tensors that it names may be others by then.
 * Invariant: a peer is not told `drained` while any job of it is unfinished. */
#include "daemon/rpc/job.h"

#include <errno.h>

#include "daemon/rpc/ending.h"
#include "daemon/rpc/later.h"
#include "daemon/rpc/progress.h"
#include "daemon/rpc/touch.h"

static struct job *job_of(struct order_entry *entry)
{
	return (struct job *)entry;
}

static bool is_operation(const Npumem__V1__Request *request)
{
	return request->call_case >= NPUMEM__V1__REQUEST__CALL_WRITE &&
	       request->call_case <= NPUMEM__V1__REQUEST__CALL_SUBMIT;
}

static bool may_wait(const Npumem__V1__Request *request)
{
	switch (request->call_case) {
	case NPUMEM__V1__REQUEST__CALL_FREE:
	case NPUMEM__V1__REQUEST__CALL_VIEW:
	case NPUMEM__V1__REQUEST__CALL_SEAL:
	case NPUMEM__V1__REQUEST__CALL_COMPACT:
	case NPUMEM__V1__REQUEST__CALL_DUMP:
	/* Its memory may be in use by what the client asked for before. */
	case NPUMEM__V1__REQUEST__CALL_UNSHARE:
	/* What a client frees it may allocate again in the next request, by the same name or in the same room. */
	case NPUMEM__V1__REQUEST__CALL_ALLOC:
	case NPUMEM__V1__REQUEST__CALL_OPEN:
	case NPUMEM__V1__REQUEST__CALL_LIST:
	case NPUMEM__V1__REQUEST__CALL_STAT:
	case NPUMEM__V1__REQUEST__CALL_RECORD:
		return true;
	default:
		return is_operation(request);
	}
}

/* What the order is to know of it. */
static struct order_entry entry_of(const struct rpc_peer *peer, struct touch *touch)
{
	return (struct order_entry){.accesses = touch->accesses,
				    .n_accesses = touch->n_accesses,
				    .owner = peer,
				    .barrier = touch->barrier,
				    .changes = touch->changes,
				    .follows = touch->follows,
				    .alone = touch->alone};
}

bool job_is_needed(struct rpc *rpc, struct rpc_peer *peer, const Npumem__V1__Request *request, struct touch *touch)
{
	struct order *order = &rpc->service->order;
	struct order_entry entry;

	bool waits = request->call_case == NPUMEM__V1__REQUEST__CALL_ALLOC && request->alloc->wait_ms;

	if (order_is_idle(order) ? !is_operation(request) && !waits : !may_wait(request))
		return false;
	touch_request(peer->session, request, &rpc->prepared, touch);
	if (waits || (touch->cost > JOB_INLINE_COST && rpc->executor.submit))
		return true;
	entry = entry_of(peer, touch);
	return !order_is_free(order, &entry);
}

/* ---- ends ---- */

void job_free(struct job *job)
{
	const struct heap *heap = job->rpc->heap;

	heap_free(heap, job->entry.accesses);
	heap_free(heap, job->message);
	budget_deinit(&job->budget);
	buffer_deinit(&job->out);
	heap_free(heap, job);
}

static void flight(const struct job *job, bool begins)
{
	struct session *session = job->call.session;

	metrics_flight(&session->service->metrics, session->metrics, &session->usage, begins);
}

static void unlink_job(struct job *job)
{
	struct rpc_peer *peer = job->peer;

	if (job->prev)
		job->prev->next = job->next;
	else
		peer->jobs = job->next;
	if (job->next)
		job->next->prev = job->prev;
	peer->n_jobs--;
	flight(job, false);
	peer->job_bytes -= job->charge;
	limits_give_back(&job->rpc->service->limits, peer->session->user, LIMITS_REQUESTS, 1);
	limits_give_back(&job->rpc->service->limits, peer->session->user, LIMITS_REQUEST_BYTES, job->charge);
}

/* Out of the order and memory; it is out of its peer's books. */
static void job_leave(struct job *job)
{
	struct rpc *rpc = job->rpc;
	struct rpc_peer *peer = job->peer;
	bool is_closing = peer->is_closing;

	if (job->is_waiting)
		waiting_remove(&rpc->service->waiting, &job->waiter);
	if (!job->left_order)
		order_finish(&rpc->service->order, &job->entry);
	job_free(job);
	if (is_closing && !peer->n_jobs)
		ending_begin(rpc, peer);
	rpc_settle(rpc);
}

void job_drop(struct job *job)
{
	unlink_job(job);
	job_leave(job);
}

void job_end(struct job *job, int status)
{
	struct rpc_peer *peer = job->peer;

	call_end(&job->call, status, job->id);
	/* First out of the books, as what is delivered may let the peer go on or end; then told, before what
	 * waited for it can be. */
	unlink_job(job);
	if (!peer->is_closing)
		peer->deliver(peer->ctx, &job->out);
	job_leave(job);
}

/* ---- work ---- */

bool job_submit_work(struct rpc *rpc, uint32_t uid, void (*work)(void *arg), void (*done)(void *arg), void *arg)
{
	const struct executor *executor = &rpc->executor;

	return executor->submit && !executor->submit(executor->ctx, uid, work, done, arg);
}

void job_work(const struct call *call, bool is_long, void (*work)(void *arg), void (*done)(void *arg), void *arg)
{
	if (is_long && job_submit_work(call->rpc, call->session->uid, work, done, arg))
		return;
	work(arg);
	done(arg);
}

static void work_op(void *arg)
{
	struct job *job = arg;

	job->status = operate_run(&job->operate, &job->error);
}

static void op_done(void *arg)
{
	struct job *job = arg;

	operate_end(&job->operate, job->status);
	if (!job->status)
		operate_record(&job->operate, &job->call, 0);
	job_end(job, job->status);
}

static int prepare(struct job *job)
{
	const struct session *session = job->call.session;
	const Npumem__V1__Request *request = job->request;

	switch (request->call_case) {
	case NPUMEM__V1__REQUEST__CALL_WRITE:
		return prepare_write(session, request->write, &job->prepared, &job->error);
	case NPUMEM__V1__REQUEST__CALL_READ:
		return prepare_read(session, request->read, &job->prepared, &job->error);
	case NPUMEM__V1__REQUEST__CALL_FILL:
		return prepare_fill(session, request->fill, &job->prepared, &job->error);
	case NPUMEM__V1__REQUEST__CALL_COPY:
		return prepare_copy(session, request->copy, &job->prepared, &job->error);
	default:
		return prepare_run(session, request->run, &job->prepared, &job->error);
	}
}

static void start_op(struct job *job)
{
	struct op *op = &job->prepared.op;
	int status = prepare(job);

	op->progress = &job->progress;
	if (!status)
		progress_follow(job);
	if (!status)
		status = operate_begin(&job->operate, &job->call, NPUMEM__V1__RESPONSE__RESULT_DONE, op);
	if (status)
		job_end(job, status);
	else
		job_work(&job->call, op_cost(job->call.rpc->service->device, op) > JOB_INLINE_COST, work_op,
			 op_done, job);
}

const Npumem__V1__Request *job_unpack(struct job *job)
{
	if (job->keeps_request)
		return job->request;
	budget_reset(&job->budget, job->bytes);
	job->request = npumem__v1__request__unpack(&job->budget.allocator, job->bytes, job->message);
	if (!job->request)
		npumem_error_set(&job->error, NPUMEM_RESOURCE_EXHAUSTED, "the daemon is out of host memory");
	return job->request;
}

static void go_on(struct job *job, int status);

static void work_step(void *arg)
{
	struct job *job = arg;

	job->call.step.work(job->call.step.arg);
}

static void step_done(void *arg)
{
	struct job *job = arg;

	go_on(job, job->call.step.finish(&job->call, job->call.step.arg));
}

/* From step to step. Those that are done here come one after the other, so that many do not become a deep stack.
 */
static void go_on(struct job *job, int status)
{
	while (status == LATER) {
		if (job->call.step.is_long &&
		    job_submit_work(job->rpc, job->call.session->uid, work_step, step_done, job))
			return;
		work_step(job);
		status = job->call.step.finish(&job->call, job->call.step.arg);
	}
	if (!status || !job_wait(job))
		job_end(job, job->error.status ? job->error.status : status);
}

static void start_call(struct job *job)
{
	job->call.turn = TENSORS_LAST;
	if (job->request->call_case != NPUMEM__V1__REQUEST__CALL_ALLOC || !job->request->alloc->wait_ms)
		job->call.turn = TENSORS_AT_ONCE;
	go_on(job, call_dispatch(&job->call, job->request));
}

static void start(struct order_entry *entry)
{
	struct job *job = job_of(entry);

	if (job->peer->is_closing) {
		job_drop(job);
		return;
	}
	if (!job_unpack(job))
		job_end(job, job->error.status);
	else if (job->request->call_case == NPUMEM__V1__REQUEST__CALL_SUBMIT)
		job_submit(job);
	else if (is_operation(job->request))
		start_op(job);
	else
		start_call(job);
}

/* ---- beginnings ---- */

static int set_accesses(struct job *job, const struct touch *touch)
{
	size_t bytes = touch->n_accesses * sizeof(*touch->accesses);

	job->entry.barrier = touch->barrier;
	job->entry.follows = touch->follows;
	job->entry.n_accesses = touch->barrier ? 0 : touch->n_accesses;
	if (!job->entry.n_accesses)
		return 0;
	heap_free(job->rpc->heap, job->entry.accesses);
	job->entry.accesses = heap_alloc(job->rpc->heap, bytes);
	if (!job->entry.accesses)
		return -ENOMEM;
	memcpy(job->entry.accesses, touch->accesses, bytes);
	return 0;
}

/* After tensors moved, came or went. Where it cannot be told what is touched now, it is everything. */
static void refresh(struct order_entry *entry)
{
	struct job *job = job_of(entry);
	struct touch touch = {.barrier = true};
	const Npumem__V1__Request *request;

	if (entry->barrier)
		return;
	request = job_unpack(job);
	npumem_error_clear(&job->error);
	if (request)
		touch_request(job->call.session, request, &job->prepared, &touch);
	if (set_accesses(job, &touch)) {
		entry->barrier = true;
		entry->n_accesses = 0;
	}
}

static void *job_alloc(void *ctx, size_t bytes)
{
	return heap_alloc(ctx, bytes);
}

static void job_release(void *ctx, void *memory)
{
	heap_free(ctx, memory);
}

struct job *job_take(struct rpc *rpc, struct rpc_peer *peer, size_t bytes)
{
	struct job *job = heap_zalloc(rpc->heap, 1, sizeof(*job));

	if (!job)
		return NULL;
	job->rpc = rpc;
	job->peer = peer;
	job->bytes = bytes;
	budget_init(&job->budget, job_alloc, job_release, (void *)rpc->heap);
	buffer_init(&job->out, rpc->heap);
	job->call = (struct call){.rpc = rpc,
				  .session = peer->session,
				  .error = &job->error,
				  .prepared = &job->prepared,
				  .job = job};
	if (reply_begin(&job->call.reply, &job->out)) {
		job_free(job);
		return NULL;
	}
	return job;
}

static void charge(struct job *job, size_t bytes)
{
	job->charge += bytes;
	job->peer->job_bytes += bytes;
	limits_charge(&job->rpc->service->limits, job->peer->session->user, LIMITS_REQUEST_BYTES, bytes);
}

void job_enlist(struct job *job, size_t bytes)
{
	struct rpc_peer *peer = job->peer;

	job->next = peer->jobs;
	if (job->next)
		job->next->prev = job;
	peer->jobs = job;
	peer->n_jobs++;
	limits_charge(&job->rpc->service->limits, peer->session->user, LIMITS_REQUESTS, 1);
	charge(job, bytes);
	flight(job, true);
}

static void begin(struct job *job, const Npumem__V1__Request *request, const struct touch *touch)
{
	job->id = request->id;
	job->call.recording.owner = &job->message;
	job->entry.changes = touch->changes;
	job->entry.alone = touch->alone;
	job->entry.owner = job->peer;
	job->entry.start = start;
	job->entry.refresh = refresh;
	order_add(&job->rpc->service->order, &job->entry);
}

int job_begin_read(struct job *job, const struct touch *touch)
{
	const struct limits_table *limits = &job->rpc->service->limits;
	int status = limits_check(limits, job->peer->session->user, LIMITS_REQUEST_BYTES, touch->reply_bytes,
				  &job->error);

	if (!status && set_accesses(job, touch))
		status = npumem_error_set(&job->error, NPUMEM_RESOURCE_EXHAUSTED,
					  "the daemon is out of host memory");
	if (status)
		return status;
	charge(job, touch->reply_bytes);
	job->left_order = false;
	begin(job, job->request, touch);
	return 0;
}

int job_check_limits(struct rpc *rpc, const struct rpc_peer *peer, size_t bytes)
{
	const struct limits_table *limits = &rpc->service->limits;
	int status = limits_check(limits, peer->session->user, LIMITS_REQUESTS, 1, &rpc->error);

	return status ? status
		      : limits_check(limits, peer->session->user, LIMITS_REQUEST_BYTES, bytes, &rpc->error);
}

int job_new(struct rpc *rpc, struct rpc_peer *peer, const Npumem__V1__Request *request, const struct touch *touch,
	    const uint8_t *message, size_t bytes)
{
	int status = job_check_limits(rpc, peer, bytes + touch->reply_bytes);
	struct job *job;

	if (status)
		return status;
	job = job_take(rpc, peer, bytes);
	if (!job)
		return -ENOMEM;
	job->message = heap_alloc(rpc->heap, bytes);
	if (!job->message || set_accesses(job, touch)) {
		job_free(job);
		return -ENOMEM;
	}
	memcpy(job->message, message, bytes);
	call_begin(&job->call, request, job->message, bytes);
	job_enlist(job, bytes + touch->reply_bytes);
	begin(job, request, touch);
	return 0;
}
