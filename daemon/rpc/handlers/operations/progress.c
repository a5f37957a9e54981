/* The way of events from a ring into a connection, and how far long runs are. What a call is, is read from what it
 * was resolved to, which stays as it is while a thread works on it.
 * Invariant: events are written only where no reply of the same connection is being written (rpc_settle). */
#include "daemon/rpc/handlers/operations/progress.h"

#include <npumem/kernels.h>
#include <stdio.h>
#include <utlist.h>

#include "daemon/device/tensors/error_context.h"
#include "daemon/rpc/handlers/operations/submission.h"
#include "daemon/rpc/handlers/operations/operate.h"
#include "daemon/service/observed/events.h"

enum {
	PROGRESS_NS = 100000000,
	/* However many follow: less than half a millisecond of the loop at a time, in events, and then a pause. */
	SEND_EVENTS = 512,
	SEND_FOLLOWER_EVENTS = 8, /* what writing to one more costs */
	SEND_PAUSE_NS = 1000000,
	/* Likewise, of progress_report: events, and calls that are visited. */
	REPORT_EVENTS = 256,
	REPORT_CALLS = 1024,
	REPORT_PAUSE_NS = 10000000,
	WHAT_BYTES = 448,
};

/* ---- what is under way ---- */

bool progress_of(const struct call *call, uint64_t *done, uint64_t *total)
{
	const struct kernel_progress *progress = call->operate ? &call->operate->progress : &call->progress;

	if (call->submission) {
		submission_progress(call, done, total);
	} else {
		/* In this order, as the run sets the total last. */
		*total = (uint64_t)atomic_load(&progress->total);
		*done = (uint64_t)atomic_load(&progress->done);
	}
	return *total > 0;
}

static size_t add_word(char *what, size_t used, const char *before, const char *key, const char *value)
{
	int n = snprintf(what + used, WHAT_BYTES - used, "%s%s%s%s", before, key, *key ? "=" : "", value);

	return used + (size_t)n < WHAT_BYTES ? used + (size_t)n : WHAT_BYTES - 1;
}

/* A label is sent only to subscribers that see all tensors of its sender. */
static size_t add_labels(const struct session *asking, const struct call *call, const char *label,
			 char what[WHAT_BYTES])
{
	const char *list = call->submission ? call->request->submit->label : "";

	if (asking->uid != call->session->uid && !session_is_admin(asking))
		return 0;
	if (!*list && !*label)
		return 0;
	return (size_t)snprintf(what, WHAT_BYTES, "%.63s%s%.63s: ", list, *list && *label ? " " : "", label);
}

static void describe(const struct session *asking, const struct call *call, const struct op *op, const char *label,
		     char what[WHAT_BYTES])
{
	const struct npumem_kernel_row *row = npumem_kernel_by_number(op->kernel);
	char name[ERROR_CONTEXT_NAME_BYTES];
	size_t used = add_labels(asking, call, label, what);

	if (op->kind != OP_RUN) {
		access_name(asking, op->tensor, name, sizeof(name));
		add_word(what, used, "", "", name);
		return;
	}
	used = add_word(what, used, "", "", row ? row->name : "?");
	for (unsigned i = 0; i < op->n_operands; i++) {
		access_name(asking, op->operands[i].tensor, name, sizeof(name));
		used = add_word(what, used, " ", op->operands[i].role, name);
	}
}

/* Of a submit, of its kernel rather than of its transfer. */
static const struct op *op_of(const struct call *call, const char **label)
{
	*label = "";
	if (call->submission)
		return submission_running(call, label);
	return call->operate ? &call->operate->prepared.op : NULL;
}

void progress_what(const struct session *asking, const struct call *call, char *what, size_t bytes)
{
	const char *label;
	const struct op *op = op_of(call, &label);
	char text[WHAT_BYTES] = "";

	if (op)
		describe(asking, call, op, label, text);
	if (call->method == METHODS_RUN)
		snprintf(what, bytes, "%.*s", (int)bytes - 1, text);
	else
		snprintf(what, bytes, "%s%s%.*s", call_row(call)->name, *text ? " " : "", (int)bytes - 1, text);
}

static void append_row(struct call *asking, unsigned field, const struct call *call)
{
	Npumem__V1__Running row = NPUMEM__V1__RUNNING__INIT;
	const char *label;
	const struct op *op = op_of(call, &label);
	char what[WHAT_BYTES] = "";

	row.session = call->session->id;
	row.uid = call->session->uid;
	row.pid = (uint32_t)call->session->pid;
	row.request_id = call->id;
	row.call = (char *)(uintptr_t)call_row(call)->name;
	row.since_ns = call->start_ns;
	row.waits = call->state == CALL_IN_LINE;
	if (op)
		describe(asking->session, call, op, label, what);
	row.what = what;
	progress_of(call, &row.done, &row.total);
	reply_message(&asking->reply, field, &row.base);
}

void progress_append(struct call *asking, unsigned field, const struct session *session,
		     struct progress_room *room)
{
	const struct rpc_peer *peer = session->peer;

	for (const struct call *call = peer ? peer->calls : NULL; call; call = call->next) {
		if (!room->n || !room->n_calls)
			return;
		room->n_calls--;
		if (!call->is_started || call == asking)
			continue;
		append_row(asking, field, call);
		room->n--;
	}
}

/* ---- sending ---- */

static int append_event(struct buffer *out, const struct event *event)
{
	Npumem__V1__Event message = NPUMEM__V1__EVENT__INIT;
	struct npumem_error none;
	struct reply reply;
	int status = reply_begin(&reply, out);

	if (status)
		return status;
	message.kind = (char *)(uintptr_t)events_name(event->kind);
	message.handle = event->handle;
	message.name = (char *)(uintptr_t)event->name;
	message.uid = event->uid;
	message.pid = event->pid;
	message.session = event->session;
	message.bytes = event->bytes;
	message.time_ns = event->time_ns;
	message.lost = event->lost;
	message.request_id = event->request_id;
	message.done = event->done;
	message.total = event->total;
	message.status = (Npumem__V1__Status)event->status;
	message.message = (char *)(uintptr_t)event->message;
	npumem_error_clear(&none);
	status = reply_result(&reply, NPUMEM__V1__RESPONSE__RESULT_EVENT, &message.base, &none);
	npumem_error_clear(&none);
	/* An answer without a result would say that the connection ends. */
	if (status)
		out->used = reply.start;
	else
		reply_end(&reply, 0, &none);
	return status;
}

/* The events of the ring go out in one piece. A subscriber that does not read gets them by rpc_peer_ready. Returns
 * the bytes. */
int progress_send_to(struct rpc *rpc, struct events_subscriber *subscriber)
{
	struct rpc_peer *peer = subscriber->owner;
	struct buffer out;
	struct event event;
	int took = SEND_FOLLOWER_EVENTS;

	if (!subscriber->n || (peer->is_behind && peer->is_behind(peer->ctx)))
		return 0;
	buffer_init(&out, rpc->heap);
	for (; events_take(subscriber, &event); took++)
		if (append_event(&out, &event))
			subscriber->lost += event.lost + 1;
	if (out.used)
		peer->deliver(peer->ctx, &out);
	buffer_deinit(&out);
	return took;
}

void progress_send(struct rpc *rpc)
{
	struct events *events = &rpc->service->events;
	struct events_subscriber *subscriber;
	int budget = SEND_EVENTS;

	if (!events->ready || (rpc->send_ns && rpc->now_ns() < rpc->send_ns))
		return;
	/* Where nothing would go on after a pause there is none. */
	while ((budget > 0 || !rpc->set_alarm) && (subscriber = events_next_ready(events)))
		budget -= progress_send_to(rpc, subscriber);
	rpc->send_ns = events->ready ? rpc->now_ns() + SEND_PAUSE_NS : 0;
}

/* ---- progress ---- */

/* As in stat: of one's uid, and for root and the daemon's uid of all. */
static bool hears(const struct events_subscriber *to, const struct call *call)
{
	return to->kinds >> EVENTS_PROGRESS & 1 &&
	       (to->session->uid == call->session->uid || session_is_admin(to->session));
}

static bool is_heard(const struct call *call)
{
	const struct events_subscriber *to = call->rpc->service->events.subscribers;

	while (to && !hears(to, call))
		to = to->next;
	return to != NULL;
}

void progress_follow(struct call *call)
{
	struct rpc *rpc = call->rpc;

	if (call->is_followed)
		return;
	call->is_followed = true;
	call->report_ns = rpc->now_ns() + PROGRESS_NS;
	DL_APPEND2(rpc->followed, call, prev_followed, next_followed);
	if (call->report_ns < rpc->report_ns && is_heard(call))
		rpc->report_ns = call->report_ns;
}

void progress_subscribed(struct rpc *rpc, unsigned kinds)
{
	/* It may have been running for long. */
	if (kinds >> EVENTS_PROGRESS & 1 && rpc->followed)
		rpc->report_ns = 0;
}

/* Puts the progress of a call into the rings of all subscribers that may see it. Returns their number. */
static int publish_progress(const struct call *call)
{
	struct event event = {.kind = EVENTS_PROGRESS,
			      .uid = call->session->uid,
			      .pid = (uint32_t)call->session->pid,
			      .session = call->session->id,
			      .request_id = call->id};
	int n = 0;

	if (!progress_of(call, &event.done, &event.total))
		return 0;
	for (struct events_subscriber *to = call->rpc->service->events.subscribers; to; to = to->next) {
		if (!hears(to, call))
			continue;
		progress_what(to->session, call, event.message, sizeof(event.message));
		events_put(to, &event);
		n++;
	}
	return n;
}

/* The first becomes the last: calls that one report does not reach are the first of the next. */
static void rotate(struct rpc *rpc, struct call *call)
{
	DL_DELETE2(rpc->followed, call, prev_followed, next_followed);
	DL_APPEND2(rpc->followed, call, prev_followed, next_followed);
}

void progress_report(struct rpc *rpc)
{
	uint64_t now = rpc->now_ns(), next = UINT64_MAX;
	struct call *first = NULL, *call;
	int budget = REPORT_EVENTS;
	unsigned n = 0;

	if (now < rpc->report_ns)
		return;
	for (; (call = rpc->followed) != first && n < REPORT_CALLS; n++) {
		first = first ? first : call;
		rotate(rpc, call);
		/* What waits goes on elsewhere. */
		if (!call_is_started(call) || !is_heard(call))
			continue;
		if (call->report_ns <= now && budget > 0) {
			call->report_ns = now + PROGRESS_NS;
			budget -= publish_progress(call);
		}
		if (call->report_ns < next)
			next = call->report_ns;
	}
	if (call != first)
		next = now;
	rpc->report_ns = next < now + REPORT_PAUSE_NS ? now + REPORT_PAUSE_NS : next;
}

uint64_t progress_due(const struct rpc *rpc)
{
	return rpc->send_ns && rpc->send_ns < rpc->report_ns ? rpc->send_ns : rpc->report_ns;
}
