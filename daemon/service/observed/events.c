/* All events are made here. Invariant: a subscriber's ring holds its latest events in order; `lost` counts the
 * events that it dropped since the last one was taken. Knows no messages. */
#include "daemon/service/observed/events.h"

#include <stdio.h>
#include <utlist.h>

#include "daemon/device/device.h"
#include "daemon/service/tables.h"
#include "daemon/service/tensors/access.h"

static const char *const names[EVENTS_N] = {
	[EVENTS_ALLOCATED] = "allocated", [EVENTS_FREED] = "freed",	    [EVENTS_SEALED] = "sealed",
	[EVENTS_RENAMED] = "renamed",	  [EVENTS_MOVED] = "moved",	    [EVENTS_DAMAGED] = "damaged",
	[EVENTS_REFUSED] = "refused",	  [EVENTS_LOW_SPACE] = "low-space", [EVENTS_CLIENT_GONE] = "client-gone",
	[EVENTS_PROGRESS] = "progress",
};

int events_parse(const char *name)
{
	for (int kind = 0; kind < EVENTS_N; kind++)
		if (!strcmp(names[kind], name))
			return kind;
	return -1;
}

const char *events_name(enum events_kind kind)
{
	return names[kind];
}

/* ---- subscribers ---- */

struct events_subscriber *events_subscribe(struct service *service, const struct session *session, void *owner,
					   unsigned kinds)
{
	struct events *events = &service->events;
	struct events_subscriber *subscriber = heap_alloc(events->heap, sizeof(*subscriber));

	if (!subscriber)
		return NULL;
	limits_charge(&service->limits, session->user, LIMITS_FOLLOWERS, 1);
	subscriber->session = session;
	subscriber->owner = owner;
	subscriber->kinds = kinds;
	subscriber->lost = 0;
	subscriber->first = subscriber->n = 0;
	subscriber->is_ready = false;
	DL_PREPEND(events->subscribers, subscriber);
	return subscriber;
}

static void line_up(struct events *events, struct events_subscriber *subscriber)
{
	if (subscriber->is_ready)
		return;
	subscriber->is_ready = true;
	DL_APPEND2(events->ready, subscriber, prev_ready, next_ready);
}

static void leave_line(struct events *events, struct events_subscriber *subscriber)
{
	if (!subscriber->is_ready)
		return;
	subscriber->is_ready = false;
	DL_DELETE2(events->ready, subscriber, prev_ready, next_ready);
}

struct events_subscriber *events_next_ready(struct events *events)
{
	struct events_subscriber *first = events->ready;

	if (first)
		leave_line(events, first);
	return first;
}

/* Takes the oldest out of a ring that has one, to drop it. */
static struct events_shared *take_out(struct events_subscriber *subscriber)
{
	struct events_shared *shared = subscriber->ring[subscriber->first];

	subscriber->first = (subscriber->first + 1) % EVENTS_RING;
	subscriber->n--;
	return shared;
}

static void drop(struct events *events, struct events_shared *shared)
{
	if (--shared->n_rings == 0)
		heap_free(events->heap, shared);
}

void events_unsubscribe(struct service *service, struct events_subscriber *subscriber)
{
	struct events *events = &service->events;

	limits_give_back(&service->limits, subscriber->session->user, LIMITS_FOLLOWERS, 1);
	leave_line(events, subscriber);
	DL_DELETE(events->subscribers, subscriber);
	while (subscriber->n)
		drop(events, take_out(subscriber));
	heap_free(events->heap, subscriber);
}

bool events_take(struct events_subscriber *subscriber, struct event *event)
{
	struct events_shared *shared;

	if (!subscriber->n)
		return false;
	shared = take_out(subscriber);
	*event = shared->event;
	event->lost = subscriber->lost;
	subscriber->lost = 0;
	drop(&subscriber->session->service->events, shared);
	return true;
}

static bool wants(const struct events_subscriber *subscriber, enum events_kind kind)
{
	return subscriber->kinds >> kind & 1;
}

/* Makes an event of this moment that is in no ring yet; NULL: no memory. */
static struct events_shared *share(struct events *events, const struct event *event)
{
	struct events_shared *shared = heap_alloc(events->heap, sizeof(*shared));

	if (!shared)
		return NULL;
	shared->n_rings = 0;
	shared->event = *event;
	shared->event.time_ns = events->now_ns ? events->now_ns() : 0;
	return shared;
}

/* `shared`: NULL where there was no memory for it. */
static void put(struct events *events, struct events_subscriber *to, struct events_shared *shared)
{
	if (!shared || to->n == EVENTS_RING)
		to->lost++;
	if (!shared)
		return;
	if (to->n == EVENTS_RING)
		drop(events, take_out(to));
	shared->n_rings++;
	to->ring[(to->first + to->n++) % EVENTS_RING] = shared;
	line_up(events, to);
}

void events_put(struct events_subscriber *subscriber, const struct event *event)
{
	struct events *events = &subscriber->session->service->events;

	if (wants(subscriber, event->kind))
		put(events, subscriber, share(events, event));
}

/* ---- events ---- */

static void set_actor(struct event *event, const struct session *actor)
{
	event->pid = actor ? (uint32_t)actor->pid : 0;
	event->session = actor ? actor->id : 0;
}

/* The part of a tensor's event that a subscriber may see. The owner's uid and others that may use the tensor get
 * different names. For an unnamed tensor, other sessions of the owner's uid get only its size. */
enum view { VIEW_NONE, VIEW_SIZE, VIEW_OWNER, VIEW_OTHER, N_VIEWS };

static enum view view_of(const struct session *session, const struct tensor *tensor)
{
	bool is_owner = session->uid == record_of(tensor)->uid;

	if (!access_sees(session, tensor))
		return is_owner ? VIEW_SIZE : VIEW_NONE;
	return is_owner ? VIEW_OWNER : VIEW_OTHER;
}

static struct events_shared *share_of_tensor(struct events *events, const struct event *common, enum view view,
					     const struct session *to, const struct tensor *tensor,
					     const struct session *actor)
{
	struct event event = *common;

	if (view == VIEW_SIZE) {
		event.message[0] = 0;
	} else {
		event.handle = tensor->handle;
		set_actor(&event, actor);
		access_name(to, tensor, event.name, sizeof(event.name));
	}
	return share(events, &event);
}

/* All events of tensors are filtered here. `common`: without the members that depend on the subscriber. */
static void emit_of_tensor(struct events *events, const struct event *common, const struct tensor *tensor,
			   const struct session *actor)
{
	struct events_shared *shared[N_VIEWS] = {NULL};

	for (struct events_subscriber *to = events->subscribers; to; to = to->next) {
		enum view view = wants(to, common->kind) ? view_of(to->session, tensor) : VIEW_NONE;

		if (view == VIEW_NONE)
			continue;
		if (!shared[view])
			shared[view] = share_of_tensor(events, common, view, to->session, tensor, actor);
		put(events, to, shared[view]);
	}
}

void events_tensor(struct service *service, enum events_kind kind, const struct tensor *tensor,
		   const struct session *actor, int64_t bytes)
{
	struct event common = {.kind = kind};

	if (!service->events.subscribers)
		return;
	common.uid = record_of(tensor)->uid;
	common.bytes = (uint64_t)(bytes < 0 ? tensor_bytes_per_npu(tensor) : bytes);
	emit_of_tensor(&service->events, &common, tensor, actor);
}

void events_renamed(struct service *service, const struct tensor *tensor, const struct session *actor,
		    const char *before)
{
	struct event common = {.kind = EVENTS_RENAMED};

	if (!service->events.subscribers)
		return;
	common.uid = record_of(tensor)->uid;
	common.bytes = (uint64_t)tensor_bytes_per_npu(tensor);
	snprintf(common.message, sizeof(common.message), "%s", before);
	emit_of_tensor(&service->events, &common, tensor, actor);
}

/* A subscriber gets events of sessions of its uid only: a refusal can depend on another uid's data. */
static bool knows(const struct events_subscriber *to, const struct session *session)
{
	return to->session->uid == session->uid || session_is_admin(to->session);
}

static void emit_of_session(const struct session *session, const struct event *event)
{
	struct events *events = &session->service->events;
	struct events_shared *shared = NULL;

	for (struct events_subscriber *to = events->subscribers; to; to = to->next) {
		if (!wants(to, event->kind) || !knows(to, session))
			continue;
		if (!shared)
			shared = share(events, event);
		put(events, to, shared);
	}
}

void events_refused(const struct session *session, uint64_t request_id, const struct npumem_error *error)
{
	struct event event = {.kind = EVENTS_REFUSED, .request_id = request_id};

	if (!session || !session->service->events.subscribers)
		return;
	event.uid = session->uid;
	event.status = error->status;
	snprintf(event.message, sizeof(event.message), "%.*s", (int)sizeof(event.message) - 1, error->message);
	set_actor(&event, session);
	emit_of_session(session, &event);
}

void events_client_gone(const struct session *session)
{
	struct event event = {.kind = EVENTS_CLIENT_GONE, .uid = session->uid};

	set_actor(&event, session);
	emit_of_session(session, &event);
}

void events_room(struct service *service)
{
	struct events *events = &service->events;
	int64_t free_bytes, largest, all = device_options(service->device)->geometry.npu_bytes;
	struct event event = {.kind = EVENTS_LOW_SPACE};

	if (!events->subscribers)
		return;
	device_room(service->device, &free_bytes, &largest);
	event.bytes = (uint64_t)free_bytes;
	if (free_bytes > all * EVENTS_ENOUGH_PERCENT / 100)
		events->is_low = false;
	if (events->is_low || free_bytes >= all * EVENTS_LOW_PERCENT / 100)
		return;
	events->is_low = true;
	for (struct events_subscriber *to = events->subscribers; to; to = to->next)
		events_put(to, &event);
}
