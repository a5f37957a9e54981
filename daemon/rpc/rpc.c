/* From a message to its handler and back. What a handler half appended before it refused is dropped here. */
#include "daemon/rpc/rpc.h"

#include <errno.h>
#include <inttypes.h>

#include "daemon/rpc/call.h"
#include "daemon/rpc/job.h"
#include "daemon/rpc/later.h"
#include "daemon/rpc/progress.h"
#include "daemon/rpc/touch.h"
#include "proto/fields.h"
#include "proto/frame.h"

static void *budget_alloc(void *ctx, size_t bytes)
{
	return heap_alloc(ctx, bytes);
}

static void budget_free(void *ctx, void *memory)
{
	heap_free(ctx, memory);
}

void rpc_init(struct rpc *rpc, struct service *service, const struct heap *heap)
{
	rpc->service = service;
	rpc->heap = heap;
	rpc->answered = NULL;
	rpc->executor = (struct executor){.submit = NULL};
	rpc->now_ns = NULL;
	rpc->set_alarm = NULL;
	rpc->alarm_ctx = NULL;
	rpc->alarm_ns = UINT64_MAX;
	rpc->send_ns = 0;
	rpc->look_ns = UINT64_MAX;
	rpc->is_sending = false;
	rpc->serve_ns = 0;
	budget_init(&rpc->budget, budget_alloc, budget_free, (void *)heap);
	rpc->has_many_fields = false;
	npumem_error_clear(&rpc->error);
}

void rpc_deinit(struct rpc *rpc)
{
	budget_deinit(&rpc->budget);
}

uint64_t call_salvage_id(const uint8_t *message, size_t bytes)
{
	uint64_t id = 0;

	if (bytes < 2 || message[0] != (1 << 3 | 0))
		return 0;
	for (size_t i = 1; i < bytes && i <= 10; i++) {
		id |= (uint64_t)(message[i] & 0x7f) << (7 * (i - 1));
		if (!(message[i] & 0x80))
			return id;
	}
	return 0;
}

int call_refuse_message(struct call *call, size_t bytes, const struct budget *budget, bool has_many_fields)
{
	if (!bytes)
		return npumem_error_set(call->error, NPUMEM_INVALID, "an empty message");
	if (has_many_fields)
		return npumem_error_set(call->error, NPUMEM_RESOURCE_EXHAUSTED,
					"a message of %zu bytes with more than %d fields: ask in parts", bytes,
					FIELDS_MAX);
	if (budget->exceeded)
		return npumem_error_set(call->error, NPUMEM_RESOURCE_EXHAUSTED,
					"a message of %zu bytes that takes more than %zu unpacked", bytes,
					budget->limit);
	if (budget->starved)
		return npumem_error_set(call->error, NPUMEM_RESOURCE_EXHAUSTED,
					"the daemon is out of host memory");
	return npumem_error_set(call->error, NPUMEM_INVALID, "a malformed message of %zu bytes", bytes);
}

static const char *const method_names[] = {
#define METHOD(name, CALL, Message, handler) #name,
#include "daemon/rpc/methods.def"
#undef METHOD
	"none"};
_Static_assert((int)CALL_METHODS <= (int)METRICS_CALLS_MAX, "a row of metrics for each call");

const char *call_method_name(unsigned method)
{
	return method_names[method];
}

static unsigned method_of(const Npumem__V1__Request *request)
{
	switch (request ? request->call_case : NPUMEM__V1__REQUEST__CALL__NOT_SET) {
#define METHOD(name, CALL, Message, handler)                                                                      \
	case NPUMEM__V1__REQUEST__CALL_##CALL:                                                                    \
		return CALL_METHOD_##CALL;
#include "daemon/rpc/methods.def"
#undef METHOD
	default:
		return CALL_METHOD_NONE;
	}
}

void call_begin(struct call *call, const Npumem__V1__Request *request, const uint8_t *message, size_t bytes)
{
	call->method = method_of(request);
	recording_begin(&call->recording);
	call->message = message;
	call->bytes = bytes;
	call->start_ns = call->rpc->now_ns ? call->rpc->now_ns() : 0;
}

static void count(const struct call *call)
{
	struct session *session = call->session;
	struct metrics_event event = {.call = call->method,
				      .status = call->error->status,
				      .bytes_in = call->bytes,
				      .bytes_out = call->reply.out->used - call->reply.start,
				      .ns = call->start_ns ? call->rpc->now_ns() - call->start_ns : 0};

	metrics_count(&session->service->metrics, session->metrics, &session->usage, &event);
	if (call->rpc->answered)
		call->rpc->answered(&(struct rpc_answer){.session = session,
							 .call = call_method_name(call->method),
							 .status = event.status,
							 .message = event.status ? call->error->message : "",
							 .bytes_in = event.bytes_in,
							 .bytes_out = event.bytes_out,
							 .ns = event.ns});
}

static int dispatch(struct call *call, const Npumem__V1__Request *request)
{
	if (!request->id)
		return npumem_error_set(call->error, NPUMEM_INVALID, "request id 0: ids are above 0");
	switch (request->call_case) {
#define METHOD(name, CALL, Message, handler)                                                                      \
	case NPUMEM__V1__REQUEST__CALL_##CALL:                                                                    \
		return handler(call, request->name);
#include "daemon/rpc/methods.def"
#undef METHOD
	default:
		break;
	}
	if (request->base.n_unknown_fields)
		return npumem_error_set(call->error, NPUMEM_UNIMPLEMENTED,
					"this daemon does not know call %" PRIu32,
					request->base.unknown_fields[0].tag);
	return npumem_error_set(call->error, NPUMEM_UNIMPLEMENTED, "the request has no call");
}

int call_dispatch(struct call *call, const Npumem__V1__Request *request)
{
	int status;

	call->step.work = NULL;
	status = dispatch(call, request);
	while (status == LATER && call->step.work && !call->job) {
		struct call_step step = call->step;

		step.work(step.arg);
		status = step.finish(call, step.arg);
	}
	return status;
}

void call_end(struct call *call, int status, uint64_t id)
{
	if (status && !call->error->status)
		npumem_error_set(call->error, NPUMEM_INTERNAL, "a refusal without a reason");
	if (status && !call->keep_result)
		reply_drop(&call->reply);
	if (!status)
		npumem_error_clear(call->error);
	else
		events_refused(call->session, id, call->error);
	reply_end(&call->reply, id, call->error);
	count(call);
	recording_end(call, call->error->status);
}

/* Unpacks into the rpc's own budget; NULL where it cannot be. */
static const Npumem__V1__Request *unpack(struct rpc *rpc, const uint8_t *message, size_t bytes)
{
	npumem_error_clear(&rpc->error);
	budget_reset(&rpc->budget, bytes);
	rpc->has_many_fields = !fields_within(&npumem__v1__request__descriptor, message, bytes, FIELDS_MAX);
	if (!bytes || rpc->has_many_fields)
		return NULL;
	return npumem__v1__request__unpack(&rpc->budget.allocator, bytes, message);
}

/* 0; -ENOMEM; LATER: nothing was done, as it is to become a job. */
static int answer(struct rpc *rpc, struct session *session, struct rpc_peer *peer,
		  const Npumem__V1__Request *request, const uint8_t *message, size_t bytes, struct buffer *out)
{
	struct call call = {.rpc = rpc,
			    .session = session,
			    .error = &rpc->error,
			    .prepared = &rpc->prepared,
			    .peer = peer,
			    .may_become_job = peer && rpc->executor.submit};
	int status;

	if (reply_begin(&call.reply, out))
		return -ENOMEM;
	call_begin(&call, request, message, bytes);
	status = request ? call_dispatch(&call, request)
			 : call_refuse_message(&call, bytes, &rpc->budget, rpc->has_many_fields);
	if (status == LATER) {
		out->used = call.reply.start;
		return LATER;
	}
	call_end(&call, status, request ? request->id : call_salvage_id(message, bytes));
	return 0;
}

int call_refuse(struct rpc *rpc, struct session *session, const Npumem__V1__Request *request,
		const uint8_t *message, size_t bytes, struct buffer *out)
{
	struct call call = {.rpc = rpc, .session = session, .error = &rpc->error};

	if (reply_begin(&call.reply, out))
		return -ENOMEM;
	call_begin(&call, request, NULL, bytes);
	call_end(&call, rpc->error.status, request ? request->id : call_salvage_id(message, bytes));
	return 0;
}

int rpc_refuse_part(struct rpc *rpc, struct session *session, const struct npumem_error *error,
		    const uint8_t *head, size_t bytes, struct buffer *out)
{
	rpc->error = *error;
	return call_refuse(rpc, session, NULL, head, bytes, out);
}

int rpc_handle(struct rpc *rpc, struct session *session, const uint8_t *message, size_t bytes, struct buffer *out)
{
	int status = answer(rpc, session, NULL, unpack(rpc, message, bytes), message, bytes, out);

	rpc_settle(rpc);
	return status;
}

/* Lets a request wait for its turn, or for its end. What cannot be is answered at once. */
static int begin_job(struct rpc *rpc, struct rpc_peer *peer, const Npumem__V1__Request *request,
		     const struct touch *touch, const uint8_t *message, size_t bytes, struct buffer *out)
{
	int status = job_new(rpc, peer, request, touch, message, bytes);

	if (status >= 0)
		return status ? call_refuse(rpc, peer->session, request, message, bytes, out) : 0;
	/* Without memory to wait with, it is refused like any other lack of memory. */
	rpc->budget.starved = true;
	return answer(rpc, peer->session, peer, NULL, message, bytes, out);
}

int call_receive(struct rpc *rpc, struct rpc_peer *peer, const uint8_t *message, size_t bytes, struct buffer *out)
{
	const Npumem__V1__Request *request = unpack(rpc, message, bytes);
	bool is_job, cancels = request && request->call_case == NPUMEM__V1__REQUEST__CALL_CANCEL;
	uint64_t cancelled = cancels ? request->cancel->request_id : 0;
	struct touch touch;
	int status = LATER;

	is_job = request && job_is_needed(rpc, peer, request, &touch);
	if (!is_job)
		status = answer(rpc, peer->session, peer, request, message, bytes, out);
	if (status == LATER) {
		if (!is_job)
			touch_request(peer->session, request, &rpc->prepared, &touch);
		status = begin_job(rpc, peer, request, &touch, message, bytes, out);
	}
	/* After the reply, as the reply of what is cancelled goes to the same place. */
	if (cancelled && !status)
		job_cancel(peer, cancelled);
	rpc_settle(rpc);
	return status;
}

void rpc_settle(struct rpc *rpc)
{
	uint64_t at, due;

	job_serve(rpc);
	progress_send(rpc);
	at = job_serve_due(rpc);
	due = progress_due(rpc);
	at = due < at ? due : at;
	if (!rpc->set_alarm || at == rpc->alarm_ns)
		return;
	rpc->alarm_ns = at;
	rpc->set_alarm(rpc->alarm_ctx, at);
}

void rpc_tick(struct rpc *rpc)
{
	rpc->alarm_ns = UINT64_MAX;
	job_expire(rpc);
	progress_look(rpc);
	rpc_settle(rpc);
}

int rpc_refuse(struct buffer *out, int status, const char *message)
{
	struct npumem_error error;
	struct reply reply;

	if (reply_begin(&reply, out))
		return -ENOMEM;
	npumem_error_clear(&error);
	npumem_error_set(&error, status, "%s", message);
	reply_end(&reply, 0, &error);
	return 0;
}
