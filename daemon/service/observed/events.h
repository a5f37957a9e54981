/* Events for subscribers: a function for each kind, and a bounded ring for each subscriber. Rings share events.
 *
 * A subscriber gets the events of tensors that it may use and of its uid's sessions and refusals. For an unnamed
 * tensor of another session of its uid it gets only kind, uid and bytes; for other tensors and other uids'
 * sessions it gets nothing. A subscriber that does not keep up loses the oldest events; the next one has the
 * number of lost ones. Without subscribers an event costs a comparison. */
#ifndef SERVICE_EVENTS_H
#define SERVICE_EVENTS_H

#include "daemon/device/tensors/error_context.h"

struct events;
struct service;
struct session;

enum events_kind {
	EVENTS_ALLOCATED,
	EVENTS_FREED,
	EVENTS_SEALED,
	EVENTS_RENAMED,
	EVENTS_MOVED,
	EVENTS_DAMAGED,
	EVENTS_REFUSED,
	EVENTS_LOW_SPACE,
	EVENTS_CLIENT_GONE,
	EVENTS_PROGRESS,
	EVENTS_N,
};

enum {
	EVENTS_RING = 256, /* that wait for one subscriber */
	EVENTS_MESSAGE_BYTES = 160,
	/* Of an NPU's bytes: free space is low below the first, and again only after it was above the second. */
	EVENTS_LOW_PERCENT = 10,
	EVENTS_ENOUGH_PERCENT = 15,
};

/* bytes, pid, …: as in the message Event. */
struct event {
	enum events_kind kind;
	uint64_t handle, session, bytes, time_ns, lost, request_id, done, total;
	uint32_t uid, pid;
	int status;
	char name[ERROR_CONTEXT_NAME_BYTES], message[EVENTS_MESSAGE_BYTES];
};

/* An event in the form that several subscribers get; owned by the rings that it is in. */
struct events_shared {
	unsigned n_rings;
	struct event event;
};

struct events_subscriber {
	const struct session *session;
	void *owner;
	unsigned kinds; /* bits */
	struct events_subscriber *next, *prev;
	struct events_subscriber *next_ready, *prev_ready;
	bool is_ready; /* it is in events.ready */
	uint64_t lost;
	unsigned first, n;
	struct events_shared *ring[EVENTS_RING];
};

/* The kind of a name, or -1; the name of a kind. */
int events_parse(const char *name);
const char *events_name(enum events_kind kind);

/* `kinds`: bits 1 << kind. Charges one of LIMITS_FOLLOWERS, which the caller has checked. NULL without memory. */
struct events_subscriber *events_subscribe(struct service *service, const struct session *session, void *owner,
					   unsigned kinds);
void events_unsubscribe(struct service *service, struct events_subscriber *subscriber);
/* Takes the oldest; false where there is none. */
bool events_take(struct events_subscriber *subscriber, struct event *event);
/* Removes the first one from events.ready; NULL: it is empty. */
struct events_subscriber *events_next_ready(struct events *events);
/* Puts an event into the ring of one subscriber. */
void events_put(struct events_subscriber *subscriber, const struct event *event);

/* An event of a tensor that is in the tables. `bytes` < 0: the tensor's. */
void events_tensor(struct service *service, enum events_kind kind, const struct tensor *tensor,
		   const struct session *actor, int64_t bytes);
/* The tensor's name was `before` until now. */
void events_renamed(struct service *service, const struct tensor *tensor, const struct session *actor,
		    const char *before);
/* A request was refused. */
void events_refused(const struct session *session, uint64_t request_id, const struct npumem_error *error);
void events_client_gone(const struct session *session);
/* The free room has changed. */
void events_room(struct service *service);

#endif
