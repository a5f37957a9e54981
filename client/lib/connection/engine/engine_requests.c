/* Requests and their answers. Invariant: `n_waiting` messages of a request, with ids from first_id to last_id, are
 * in the table of pending messages with it; of a live request at least one, but while it is being answered. */
#include "client/lib/messages/request.h"

#include <string.h>

#include "client/lib/connection/clock.h"
#include "client/lib/connection/engine/engine.h"

enum { REQUEST_ROOM_BYTES = 1024 }; /* a tensor's, the largest of the ordinary answers */

/* ---- making and ending ---- */

static int no_memory(struct npumem_error *error)
{
	return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "no memory in this process for a request");
}

int request_no_memory(struct npumem_error *error)
{
	return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
				"no memory in this process for the answer, though it was done");
}

static struct npumem_request *take_free(struct npumem *npumem)
{
	struct npumem_request *request = npumem->free_requests;
	if (request) {
		npumem->free_requests = request->next;
		return request;
	}
	request = memory_alloc(npumem->memory, sizeof(*request));
	if (request)
		request->results = NULL;
	return request;
}

int request_new(struct npumem *npumem, const struct request_kind *kind, size_t room, npumem_callback *callback,
		void *context, struct npumem_request **out, struct npumem_error *error)
{
	request_clear(error);
	*out = NULL;
	if (npumem->broken.status)
		return engine_error(npumem, error);
	struct npumem_request *request = take_free(npumem);
	if (!request)
		return no_memory(error);
	struct result *results = request->results;
	if (results && results->room < room) {
		result_unref(results);
		results = NULL;
	}
	if (!results)
		results = result_new(npumem->memory, &npumem->results,
				     room > REQUEST_ROOM_BYTES ? room : REQUEST_ROOM_BYTES);
	*request = (struct npumem_request){.npumem = npumem, .kind = kind, .callback = callback};
	request->context = context;
	request->results = results;
	request->next = npumem->free_requests;
	if (!results) {
		npumem->free_requests = request;
		return no_memory(error);
	}
	*out = request;
	return 0;
}

static void unlink_live(struct npumem_request *request)
{
	struct npumem *npumem = request->npumem;
	if (!request->is_live)
		return;
	*(request->previous ? &request->previous->next : &npumem->first_request) = request->next;
	*(request->next ? &request->next->previous : &npumem->last_request) = request->previous;
	request->is_live = false;
	npumem->n_requests--;
}

/* A message of it that was sent and not answered, or NULL. */
static struct pending *pending_of(const struct npumem_request *request, uint64_t id)
{
	struct pending *pending = pending_find(&request->npumem->pending, id);
	return pending && pending->request == request ? pending : NULL;
}

/* Nobody waits for its messages' answers any more, and what they were lent goes back. */
static void disown(struct npumem_request *request)
{
	struct npumem *npumem = request->npumem;
	for (uint64_t id = request->first_id; request->n_waiting && id <= request->last_id; id++) {
		struct pending *pending = pending_of(request, id);
		if (!pending)
			continue;
		pending->request = NULL;
		pending->to = NULL;
		inbox_disown(&npumem->in, id);
		resume_disown(npumem, pending);
		request->n_waiting--;
	}
	engine_let_go(npumem, request);
}

static void give_back(struct npumem_request *request)
{
	struct npumem *npumem = request->npumem;
	struct result *results = request->results;
	if (results->references == 1 && results->room <= REQUEST_ROOM_BYTES && !results->destroy) {
		result_reset(results);
	} else {
		result_unref(results);
		request->results = NULL;
	}
	request->next = npumem->free_requests;
	npumem->free_requests = request;
}

void request_end(struct npumem_request *request)
{
	disown(request);
	unlink_live(request);
	give_back(request);
}

/* ---- sending ---- */

static void link_live(struct npumem_request *request)
{
	struct npumem *npumem = request->npumem;
	if (request->is_live)
		return;
	request->is_live = true;
	request->deadline = clock_after(npumem->call_ms);
	if (request->deadline < npumem->next_deadline)
		npumem->next_deadline = request->deadline;
	request->next = NULL;
	request->previous = npumem->last_request;
	*(request->previous ? &request->previous->next : &npumem->first_request) = request;
	npumem->last_request = request;
	npumem->n_requests++;
}

int request_send(struct npumem_request *request, Npumem__V1__Request *message, const struct request_extra *extra,
		 struct npumem_error *error)
{
	static const struct request_extra none;
	if (request->is_cancelled)
		return npumem_error_set(error, NPUMEM_CANCELLED, "cancelled between two of its parts");
	int status = engine_send(request->npumem, request, message, extra ? extra : &none, error);
	if (status)
		return status;
	request->last_id = message->id;
	if (!request->n_waiting++)
		request->first_id = message->id;
	link_live(request);
	return 0;
}

int request_start(struct npumem_request *request, Npumem__V1__Request *message, const struct request_extra *extra,
		  struct npumem_request **out, struct npumem_error *error)
{
	return request_sent(request, request_send(request, message, extra, error), out);
}

int request_call(struct npumem *npumem, const struct request_kind *kind, Npumem__V1__Request *message,
		 const struct request_extra *extra, NPUMEM_ASYNC)
{
	struct npumem_request *made;
	int status = request_new(npumem, kind, 0, callback, context, &made, error);
	return status ? status : request_start(made, message, extra, request, error);
}

int request_sent(struct npumem_request *request, int status, struct npumem_request **out)
{
	if (status)
		request_end(request);
	else if (out)
		*out = request;
	return status;
}

/* ---- answering ---- */

static void call_back(struct npumem_request *request, const struct npumem_error *error)
{
	static const struct npumem_error no_error;
	struct npumem_answer answer = {.status = error ? error->status : 0, .error = error ? error : &no_error};
	answer.result = request->answer;
	disown(request);
	unlink_live(request);
	if (error && request->kind->failed)
		request->kind->failed(request);
	if (request->callback)
		request->callback(request->context, &answer);
	give_back(request);
}

void request_fail(struct npumem_request *request, const struct npumem_error *error)
{
	request->answer = NULL;
	call_back(request, error);
}

static bool has_result(const struct request_kind *kind, const Npumem__V1__Response *response)
{
	return response->result_case == kind->result || kind->result == REQUEST_ANY;
}

/* Of a list that was refused half-way there is the result of what ran. */
static int refuse(struct npumem_request *request, const Npumem__V1__Response *response,
		  const struct npumem_error *error)
{
	struct npumem_error ignored;
	bool is_taken =
		response && response->result_case && has_result(request->kind, response) && request->kind->take;
	request->answer = NULL;
	request_clear(&ignored);
	int status = is_taken ? request->kind->take(request, response, &ignored) : 0;
	call_back(request, error);
	return status < 0 ? -1 : 0;
}

int request_answered(struct npumem_request *request, const Npumem__V1__Response *response,
		     const struct npumem_error *error)
{
	const struct request_kind *kind = request->kind;
	struct npumem_error why;
	if (error)
		return refuse(request, response, error);
	if (!has_result(kind, response))
		return -1;
	request_clear(&why);
	int status = kind->take ? kind->take(request, response, &why) : 0;
	if (status < 0)
		return -1;
	if (!status && kind->next)
		status = kind->next(request, &why);
	if (status)
		request_fail(request, &why);
	else if (!request->n_waiting)
		call_back(request, NULL);
	return 0;
}

/* ---- taking back ---- */

static void cancel_messages(struct npumem_request *request)
{
	unsigned left = request->n_waiting;
	for (uint64_t id = request->first_id; left && id <= request->last_id; id++)
		if (pending_of(request, id)) {
			engine_cancel(request->npumem, id);
			left--;
		}
}

void npumem_cancel(struct npumem_request *request)
{
	if (!request || request->is_cancelled || !request->is_live)
		return;
	request->is_cancelled = true;
	cancel_messages(request);
}

void npumem_let_go(struct npumem_request *request)
{
	if (request && request->is_live)
		request_end(request);
}

uint64_t npumem_request_id(const struct npumem_request *request)
{
	return request->last_id;
}

void request_expire(struct npumem *npumem)
{
	struct npumem_error error;
	int64_t now = clock_now();
	if (now < npumem->next_deadline)
		return;
	npumem->next_deadline = CLOCK_NEVER;
	request_clear(&error);
	npumem_error_set(&error, NPUMEM_DEADLINE_EXCEEDED,
			 "no answer within the %u ms of a call; what it has done by now is unknown",
			 npumem->call_ms);
	struct npumem_request *request = npumem->first_request;
	while (request && !npumem->closing) {
		if (request->deadline > now) {
			if (request->deadline < npumem->next_deadline)
				npumem->next_deadline = request->deadline;
			request = request->next;
			continue;
		}
		if (!request->is_cancelled)
			cancel_messages(request);
		request_fail(request, &error);
		/* Its callback may have let go of any other. */
		request = npumem->first_request;
	}
}
