/* The answers of requests that were done before. A tensor that still exists is described as it is now, one that
 * was freed as it was when it was made. Invariant: a request of which anything is kept that must not be done twice
 * is never passed on. */
#include "daemon/rpc/handlers/replayed.h"

#include <inttypes.h>

#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/handlers/operations/submission.h"
#include "daemon/rpc/handlers/tensor_page.h"
#include "daemon/service/operations.h"
#include "daemon/service/kept/results.h"
#include "daemon/service/kept/stale.h"
#include "proto/wire.h"

enum {
	DEATHS_MAX = 2, /* of the daemon while a request runs */
};

static bool is_forgotten(const struct call *call)
{
	return call->request->again && call->id < call->session->forgotten_below;
}

static int refuse_forgotten(struct call *call)
{
	return npumem_error_set(call->error, NPUMEM_ABORTED,
				"whether request %" PRIu64 " was done is not known any more", call->id);
}

static int check_forgotten(struct call *call)
{
	return is_forgotten(call) ? refuse_forgotten(call) : 0;
}

/* Those of a kind, each in its place; NULL where there is none. Once for a request: a session may have thousands.
 */
static void find_all(const struct call *call, enum results_kind kind, const struct results_cell **found, size_t n)
{
	const struct result *result = NULL;

	memset(found, 0, n * sizeof(struct results_cell *));
	while ((result = results_next(call->session, call->id, result)))
		if (result->kept.kind == (uint32_t)kind && result->kept.index < n)
			found[result->kept.index] = &result->kept;
}

static const struct results_cell *find(const struct call *call, enum results_kind kind)
{
	const struct results_cell *found;

	find_all(call, kind, &found, 1);
	return found;
}

/* ---- tensors ---- */

struct gone {
	Npumem__V1__Tensor message;
	struct convert_place place;
	struct npumem_spec spec;
	struct npumem_place resolved;
};

/* The request that comes again was not checked, and the reply has room for what a tensor can be called. */
static char *short_text(const char *text)
{
	bool is_short = strnlen(text, NPUMEM_NAME_BYTES_MAX + 1) <= NPUMEM_NAME_BYTES_MAX;

	return (char *)(uintptr_t)(is_short ? text : "");
}

/* A tensor that was freed since, as it was when it was made. A view has its name only. */
static const ProtobufCMessage *describe_gone(const struct call *call, const struct results_cell *kept,
					     const char *name, const Npumem__V1__Allocation *made_by,
					     struct gone *to)
{
	const struct npumem_geometry *geometry = &device_options(call->rpc->service->device)->geometry;
	struct npumem_error error;

	npumem_error_clear(&error);
	npumem__v1__tensor__init(&to->message);
	to->message.handle = kept->handle;
	to->message.name = short_text(name);
	to->message.uid = call->session->uid;
	to->message.state = (char *)"unwritten";
	if (!made_by || wire_spec(made_by->spec, &to->spec, &error) ||
	    npumem_place_resolve(geometry, &to->spec, &to->resolved, &error) ||
	    npumem_place_at(geometry, &to->resolved, kept->address, &error))
		return &to->message.base;
	convert_place_to(&to->resolved, &to->place);
	to->message.place = &to->place.message;
	to->message.unwritten_bytes = to->resolved.blocks.data;
	to->message.reuse = made_by->reuse ? made_by->reuse : NPUMEM__V1__REUSE__NEVER;
	to->message.dma_only = made_by->dma_only;
	to->message.label = short_text(made_by->label);
	to->message.pinned = made_by->pinned || to->spec.address != NPUMEM_ANY;
	return &to->message.base;
}

static void append_one(struct call *call, const Npumem__V1__Allocation *allocation, const struct tensor *tensor,
		       const struct results_cell *gone)
{
	struct tensor_message message;
	struct device_state state;
	struct gone to;

	if (!tensor) {
		reply_message(&call->reply, TENSORS_FIELD,
			      describe_gone(call, gone, allocation->name, allocation, &to));
		return;
	}
	tensors_new_state(tensor, &state);
	reply_message(&call->reply, TENSORS_FIELD, tensor_message(call, tensor, &state, &message));
}

static int replayed_alloc(struct call *call, const Npumem__V1__AllocRequest *request)
{
	struct tensor *tensors[TENSORS_ALLOC_MAX] = {NULL};
	const struct results_cell *gone[TENSORS_ALLOC_MAX];
	size_t n = request->n_tensors, n_found = 0, mark;
	int status;

	if (!n || n > TENSORS_ALLOC_MAX)
		return 0;
	results_made(call->session, call->id, tensors, n);
	find_all(call, RESULTS_MADE, gone, n);
	for (size_t i = 0; i < n; i++)
		n_found += tensors[i] || gone[i];
	if (n_found < n)
		return n_found ? refuse_forgotten(call) : check_forgotten(call);
	status = reply_reserve(&call->reply, (n + 1) * TENSOR_MESSAGE_BYTES_MAX, call->error);
	if (status)
		return status;
	mark = reply_open(&call->reply, NPUMEM__V1__RESPONSE__RESULT_ALLOCATED, n * TENSOR_MESSAGE_EXPECTED_BYTES);
	for (size_t i = 0; i < n; i++)
		append_one(call, request->tensors[i], tensors[i], gone[i]);
	reply_close(&call->reply, mark, n * TENSOR_MESSAGE_EXPECTED_BYTES);
	call->handle = handler_nothing;
	return 0;
}

static int resolve_tensor(struct call *call, uint64_t handle)
{
	Npumem__V1__Ref ref = NPUMEM__V1__REF__INIT;

	ref.handle = handle;
	call->handle = handle_tensors_open;
	return resolve_open_of(call, &ref);
}

static int answer_gone(struct call *call, const struct results_cell *kept, const char *name)
{
	struct gone to;
	int status = reply_reserve(&call->reply, TENSOR_MESSAGE_BYTES_MAX, call->error);

	if (status)
		return status;
	reply_message(&call->reply, NPUMEM__V1__RESPONSE__RESULT_TENSOR,
		      describe_gone(call, kept, name, NULL, &to));
	call->handle = handler_nothing;
	return 0;
}

/* For this session: to open it takes the right to read it, which may have been taken away since. */
static bool is_there(const struct call *call, uint64_t handle)
{
	const struct tensor *tensor = device_find(call->rpc->service->device, handle);
	struct npumem_error ignored = {.status = 0};

	return tensor && !record_is_going(record_of(tensor)) &&
	       !access_check(call->session, tensor, ACCESS_READ, &ignored);
}

/* The tensor of the request; `kept` NULL: nothing is known of it. */
static int answer_tensor(struct call *call, const struct results_cell *kept, const char *name)
{
	if (!kept)
		return check_forgotten(call);
	return is_there(call, kept->handle) ? resolve_tensor(call, kept->handle) : answer_gone(call, kept, name);
}

static int replayed_view(struct call *call)
{
	const struct results_cell *kept = find(call, RESULTS_MADE);
	struct results_cell made;
	struct tensor *view = NULL;

	results_made(call->session, call->id, &view, 1);
	if (view) {
		made = (struct results_cell){.handle = view->handle};
		kept = &made;
	}
	return answer_tensor(call, kept, call->request->view->name);
}

static int replayed_free(struct call *call)
{
	const struct results_cell *kept = find(call, RESULTS_FREED);
	Npumem__V1__Freed message = NPUMEM__V1__FREED__INIT;

	if (!kept)
		return check_forgotten(call);
	message.tensors = (int64_t)kept->number;
	call->handle = handler_nothing;
	return reply_result(&call->reply, NPUMEM__V1__RESPONSE__RESULT_FREED, &message.base, call->error);
}

/* ---- data ---- */

static size_t n_operations(const struct call *call)
{
	return call->method == METHODS_SUBMIT ? call->request->submit->n_operations : 1;
}

/* Whether its answer had data that is not kept. */
static bool has_data(const struct call *call)
{
	const Npumem__V1__SubmitRequest *submit = call->request->submit;

	if (call->method != METHODS_SUBMIT)
		return false;
	for (size_t i = 0; i < submit->n_operations; i++)
		if (submit->operations[i]->kind_case == NPUMEM__V1__OPERATION__KIND_READ &&
		    !submit->operations[i]->read->segment)
			return true;
	return false;
}

static int abort_at(struct call *call, size_t n_done)
{
	size_t n = n_operations(call);

	if (n_done < n)
		npumem_error_set(
			call->error, NPUMEM_ABORTED,
			"%zu of its %zu operations were done when the daemon ended, and must not be done twice",
			n_done, n);
	else
		npumem_error_set(call->error, NPUMEM_ABORTED,
				 "it was done when the daemon ended, and what it read is not known any more");
	npumem_error_number(call->error, "done", (int64_t)n_done);
	return NPUMEM_ABORTED;
}

static void append_done(struct call *call, unsigned field, const struct results_cell *kept)
{
	Npumem__V1__Done done = NPUMEM__V1__DONE__INIT;

	done.saturated = kept->counts.saturated;
	done.wrapped = kept->counts.wrapped;
	done.divided_by_zero = kept->counts.divided_by_zero;
	done.macs = kept->counts.macs;
	done.operation = kept->index;
	reply_message(&call->reply, field, &done.base);
}

static int answer_done(struct call *call, const struct results_cell *const *done, size_t n)
{
	size_t expected = n * OPERATE_DONE_BYTES, mark;
	int status = reply_reserve(&call->reply, expected + 2 * REPLY_TAG_BYTES, call->error);

	if (status)
		return status;
	call->handle = handler_nothing;
	if (call->method != METHODS_SUBMIT) {
		append_done(call, NPUMEM__V1__RESPONSE__RESULT_DONE, done[0]);
		return 0;
	}
	mark = reply_open(&call->reply, NPUMEM__V1__RESPONSE__RESULT_SUBMITTED, expected);
	for (size_t i = 0; i < n; i++)
		append_done(call, SUBMITTED_DONE, done[i]);
	reply_close(&call->reply, mark, expected);
	return 0;
}

/* What its id has left may be another request's, with fewer places or without the first: each of its own counts.
 */
static int replayed_data(struct call *call)
{
	const struct results_cell *done[OPERATIONS_MAX];
	const struct result *result = NULL;
	size_t n = n_operations(call), n_done = 0;
	bool is_final = false;

	if (n > OPERATIONS_MAX)
		return 0;
	while ((result = results_next(call->session, call->id, result)))
		is_final |= result->kept.kind == RESULTS_DONE && result->kept.number;
	if (!is_final) {
		results_forget(call->session, call->id);
		return 0;
	}
	find_all(call, RESULTS_DONE, done, n);
	for (size_t i = 0; i < n; i++)
		n_done += done[i] != NULL;
	return n_done < n || has_data(call) ? abort_at(call, n_done) : answer_done(call, done, n);
}

/* ---- all of them ---- */

static int answer_kept(struct call *call)
{
	switch (call_row(call)->keeps) {
	case METHODS_KEEPS_TENSORS:
		return replayed_alloc(call, call->request->alloc);
	case METHODS_KEEPS_VIEW:
		return replayed_view(call);
	case METHODS_KEEPS_COUNT:
		return replayed_free(call);
	case METHODS_KEEPS_CHANGE:
		return answer_tensor(call, find(call, RESULTS_CHANGED), "");
	case METHODS_KEEPS_DONE:
		return replayed_data(call);
	default:
		return 0;
	}
}

int replayed_check_deaths(struct call *call)
{
	uint64_t deaths =
		call->request->again && call->session->has_token ? results_deaths(call->session, call->id) : 0;

	if (deaths < DEATHS_MAX)
		return 0;
	npumem_error_set(call->error, NPUMEM_ABORTED,
			 "the daemon died %" PRIu64 " times while this request ran: it is not run again", deaths);
	npumem_error_number(call->error, "deaths", (int64_t)deaths);
	return NPUMEM_ABORTED;
}

int replayed_resolve(struct call *call)
{
	int status;

	if (!call->request->again || !call->session->has_token)
		return 0;
	status = answer_kept(call);
	if (status || call->handle)
		return status;
	status = replayed_check_deaths(call);
	if (!status && stale_has(call->session, call->id))
		status = npumem_error_set(
			call->error, NPUMEM_ABORTED,
			"request %" PRIu64
			" was answered, and what it worked on was changed before the answer was read",
			call->id);
	return status;
}

int replayed_check(struct call *call)
{
	return repeat_is_safe(&call->repeat) ? 0 : check_forgotten(call);
}

bool replayed_is_kept(const struct call *call)
{
	const struct result *result = NULL;
	struct tensor *made = NULL;

	if (!call->request->again || !call->session->has_token)
		return false;
	results_made(call->session, call->id, &made, 1);
	while ((result = results_next(call->session, call->id, result)))
		if (result->kept.kind != RESULTS_DIED)
			return true;
	return made || is_forgotten(call);
}
