/* Subscribing, and the way of events from a ring into a connection.
 * Invariant: events are written only where no reply of the same connection is being written (advance_settle). */
#include <inttypes.h>
#include <stdio.h>

#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/calls/progress.h"
#include "daemon/rpc/handlers/running.h"
#include "daemon/rpc/handlers/submit.h"

enum {
	PROGRESS_NS = 100000000,
	/* However many follow: less than half a millisecond of the loop at a time, in events, and then a pause. */
	SEND_EVENTS = 512,
	SEND_FOLLOWER_EVENTS = 8, /* what writing to one more costs */
	SEND_PAUSE_NS = 1000000,
	LOOK_PAUSE_NS = 10000000, /* as each look is at all calls of all who follow */
};

static bool wants_progress(const struct rpc_peer *peer)
{
	return peer->subscriber && peer->subscriber->kinds >> EVENTS_PROGRESS & 1;
}

int handle_events_subscribe(struct call *call, const Npumem__V1__SubscribeRequest *request)
{
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
	if (!peer)
		return npumem_error_set(call->error, NPUMEM_FAILED_PRECONDITION,
					"there is no connection to send events to");
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
	/* It may have been running for long. */
	if (wants_progress(peer) && peer->n_calls > 1)
		call->rpc->look_ns = 0;
	return 0;
}

/* ---- sending ---- */

static int append(struct buffer *out, const struct event *event)
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
	reply_end(&reply, 0, &none);
	return status;
}

/* What is in the ring goes out in one piece. Whoever does not read is served by rpc_peer_ready. Returns what it
 * took. */
static int send_to(struct rpc *rpc, struct events_subscriber *subscriber)
{
	struct rpc_peer *peer = subscriber->owner;
	struct buffer out;
	struct event event;
	int took = SEND_FOLLOWER_EVENTS;

	if (!subscriber->n || (peer->is_behind && peer->is_behind(peer->ctx)))
		return 0;
	buffer_init(&out, rpc->heap);
	for (; events_take(subscriber, &event); took++)
		if (append(&out, &event))
			subscriber->lost++;
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

	if (!events->ready || (rpc->send_ns && rpc->now_ns && rpc->now_ns() < rpc->send_ns))
		return;
	/* Where nothing would go on after a pause there is none. */
	while ((budget > 0 || !rpc->now_ns || !rpc->set_alarm) && (subscriber = events_next_ready(events)))
		budget -= send_to(rpc, subscriber);
	rpc->send_ns = events->ready && rpc->now_ns ? rpc->now_ns() + SEND_PAUSE_NS : 0;
}

void rpc_peer_ready(struct rpc *rpc, struct rpc_peer *peer)
{
	if (peer->subscriber)
		send_to(rpc, peer->subscriber);
}

/* ---- progress ---- */

/* From when on its progress is told; never while it waits. */
static bool is_watched(const struct call *call)
{
	return call_is_started(call) && call->look_ns;
}

void progress_follow(struct call *call)
{
	struct rpc *rpc = call->rpc;

	if (!rpc->now_ns)
		return;
	call->look_ns = rpc->now_ns() + PROGRESS_NS;
	if (wants_progress(call->peer) && call->look_ns < rpc->look_ns)
		rpc->look_ns = call->look_ns;
}

void progress_look(struct rpc *rpc)
{
	uint64_t now = rpc->now_ns ? rpc->now_ns() : 0, next = UINT64_MAX;

	if (now < rpc->look_ns)
		return;
	for (struct events_subscriber *to = rpc->service->events.subscribers; to; to = to->next) {
		const struct rpc_peer *peer = to->owner;

		if (!wants_progress(peer))
			continue;
		for (struct call *call = peer->calls; call; call = call->next) {
			struct event event = {.kind = EVENTS_PROGRESS};
			bool is_due = is_watched(call) && call->look_ns <= now;

			if (is_due)
				call->look_ns = now + PROGRESS_NS;
			if (is_watched(call) && call->look_ns < next)
				next = call->look_ns;
			if (!is_due)
				continue;
			event.uid = peer->session->uid;
			event.pid = (uint32_t)peer->session->pid;
			event.session = peer->session->id;
			event.request_id = call->id;
			if (running_progress(call, &event.done, &event.total))
				events_put(to, &event);
		}
	}
	rpc->look_ns = next < now + LOOK_PAUSE_NS ? now + LOOK_PAUSE_NS : next;
}

uint64_t progress_due(const struct rpc *rpc)
{
	return rpc->send_ns && rpc->send_ns < rpc->look_ns ? rpc->send_ns : rpc->look_ns;
}
