/* Requests about the session and its connection: its segments, its events, its return, and the end of another
 * request.
 */
#include <inttypes.h>

#include "daemon/rpc/calls/charge.h"
#include "daemon/rpc/calls/life.h"
#include "daemon/rpc/calls/perform.h"
#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/handlers/replayed.h"
#include "daemon/rpc/handlers/operations/progress.h"
#include "daemon/rpc/order/gate.h"
#include "daemon/rpc/resume/detached.h"
#include "daemon/service/observed/events.h"
#include "daemon/service/segments.h"

/* ---- system memory ---- */

static int mapped(struct call *call)
{
	Npumem__V1__Shared message = NPUMEM__V1__SHARED__INIT;
	struct segment *segment = call->task;
	int status = segments_mapped(call->session, segment, call->error);

	if (status)
		return status;
	call->recording.shared = segment;
	message.segment = segment->id;
	message.bytes = segment->memory.bytes;
	message.writable = segment->memory.writable;
	reply_message(&call->reply, NPUMEM__V1__RESPONSE__RESULT_SHARED, &message.base);
	return 0;
}

static void on_mapped(void *arg)
{
	struct call *call = arg;
	struct rpc *rpc = call->rpc;

	call_attribute(call);
	perform_go_on(call, mapped(call));
	rpc->settle(rpc);
}

/* The descriptor came with the request, and is taken at once. Later requests of the session wait for its end, so
 * that they find the segment. */
int handle_session_share(struct call *call)
{
	struct segment *segment;
	int status = reply_reserve(&call->reply, 4 * REPLY_TAG_BYTES, call->error);

	if (!status)
		status = segments_share(call->session, call->request->share->segment, &segment, call->error);
	if (status)
		return status;
	call->task = segment;
	gate_shut(call);
	charge_in_any_case(call);
	return segments_map(call->session, segment, on_mapped, call) ? CALL_ELSEWHERE : mapped(call);
}

int handle_session_unshare(struct call *call)
{
	Npumem__V1__Unshared message = NPUMEM__V1__UNSHARED__INIT;
	int status = reply_reserve(&call->reply, 2 * REPLY_TAG_BYTES, call->error);

	if (!status)
		status = segments_unshare(call->session, call->request->unshare->segment, call->error);
	if (!status)
		reply_message(&call->reply, NPUMEM__V1__RESPONSE__RESULT_UNSHARED, &message.base);
	return status;
}

/* ---- events ---- */

int handle_session_subscribe(struct call *call)
{
	const Npumem__V1__SubscribeRequest *request = call->request->subscribe;
	Npumem__V1__Subscribed message = NPUMEM__V1__SUBSCRIBED__INIT;
	struct rpc_peer *peer = call->peer;
	unsigned kinds = 0;
	int status;

	for (size_t i = 0; i < request->n_kinds; i++) {
		int kind = events_parse(request->kinds[i]);

		if (kind < 0)
			return npumem_error_set(call->error, NPUMEM_INVALID,
						"there are no events of the kind \"%.40s\"", request->kinds[i]);
		kinds |= 1u << kind;
	}
	status = reply_result(&call->reply, NPUMEM__V1__RESPONSE__RESULT_SUBSCRIBED, &message.base, call->error);
	if (status)
		return status;
	if (peer->subscriber && kinds) {
		peer->subscriber->kinds = kinds;
	} else if (peer->subscriber) {
		events_unsubscribe(call->rpc->service, peer->subscriber);
		peer->subscriber = NULL;
	} else if (kinds) {
		status = limits_check(&call->rpc->service->limits, peer->session->user, LIMITS_FOLLOWERS, 1,
				      call->error);
		if (status)
			return status;
		peer->subscriber = events_subscribe(call->rpc->service, peer->session, peer, kinds);
		if (!peer->subscriber)
			return heap_exhausted(call->error);
	}
	progress_subscribed(call->rpc, kinds);
	return 0;
}

/* ---- its token, and its return ---- */

static int go_on_as(struct call *call, const Npumem__V1__ResumeRequest *request)
{
	if (!session_is_fresh(call->session) || call->peer->n_calls != 1)
		return npumem_error_set(call->error, NPUMEM_INVALID,
					"this connection has a session of its own: a token is to come first");
	int status =
		detached_return(call->rpc, call->session, request->token.data, request->token.len, call->error);
	if (status || !request->linger || !call->session->has_token || call->session->lingers)
		return status;
	return persist_session_begin(call->session, true, call->error);
}

int handle_session_resume(struct call *call)
{
	const Npumem__V1__ResumeRequest *request = call->request->resume;
	Npumem__V1__Resumed message = NPUMEM__V1__RESUMED__INIT;
	const struct persist *persist = &call->rpc->service->persist;
	struct session *session = call->session;
	int status = reply_reserve(&call->reply, PERSIST_TOKEN_BYTES + 6 * REPLY_TAG_BYTES, call->error);

	if (!status && request->token.len)
		status = go_on_as(call, request);
	else if (!status && persist_is_on(persist))
		status = persist_session_begin(session, request->linger, call->error);
	if (status)
		return status;
	if (session->has_token) {
		message.token = (ProtobufCBinaryData){PERSIST_TOKEN_BYTES, session->token};
		message.resume_seconds = persist->resume_seconds;
	}
	message.session = session->id;
	reply_message(&call->reply, NPUMEM__V1__RESPONSE__RESULT_RESUMED, &message.base);
	return 0;
}

/* ---- cancelling ---- */

static struct call *find(const struct rpc_peer *peer, uint64_t id)
{
	struct call *call = peer->calls;

	while (call && call->id != id)
		call = call->next;
	return call;
}

static void cancel_other(struct call *call)
{
	if (call_is_started(call)) {
		perform_cancel(call);
		return;
	}
	/* A request of which something has taken effect goes on. */
	if (call->is_committed || replayed_is_kept(call))
		return;
	npumem_error_clear(call->error);
	life_end(call,
		 npumem_error_set(call->error, NPUMEM_CANCELLED, "request %" PRIu64 " was cancelled", call->id));
}

int handle_session_cancel(struct call *call)
{
	Npumem__V1__Cancelled message = NPUMEM__V1__CANCELLED__INIT;
	struct call *other = find(call->peer, call->request->cancel->request_id);
	int status;

	other = other == call ? NULL : other;
	message.found = other != NULL;
	status = reply_result(&call->reply, NPUMEM__V1__RESPONSE__RESULT_CANCELLED, &message.base, call->error);
	if (!status && other)
		cancel_other(other);
	return status;
}
