/* The service over one device: who may do what with its tensors. Knows sessions and uids, no sockets or messages.
 */
#ifndef SERVICE_SERVICE_H
#define SERVICE_SERVICE_H

#include "daemon/device/device.h"
#include "daemon/service/observed/events.h"
#include "daemon/service/fair_queue.h"
#include "daemon/service/limits.h"
#include "daemon/service/observed/metrics.h"
#include "daemon/service/names.h"
#include "daemon/service/kept/persist.h"
#include "daemon/service/record.h"
#include "daemon/service/observed/recorder.h"
#include "daemon/service/kept/recovered.h"
#include "daemon/service/scheduler.h"
#include "daemon/service/kept/snapshot.h"
#include "daemon/service/waiting.h"

struct service {
	struct device *device;
	const struct heap *heap;
	uint32_t uid; /* the daemon's own: it and root may administer everything */
	struct limits_table limits;
	struct names names;
	struct scheduler scheduler; /* of what is under way */
	struct fair_queue queue;    /* of the work that waits for the thread that owns the device */
	struct fair_user self;	    /* for work in it that is done for all users */
	struct waiting waiting;	    /* for room */
	struct events events;
	struct metrics metrics;
	struct recorder recorder;
	struct persist persist;
	struct recovered recovered;
	struct snapshot snapshot;
	struct session *sessions;
	struct session_walk *walks; /* of them, that have begun */
	uint64_t n_sessions, last_session;
	uint64_t changes; /* tensors that came, free requests that arrived, new names: see record.h's changed_at */
};

/* `service` is zero; `device` and `heap` outlive it. `seed`: a number that no client can know. 0 or -ENOMEM. */
int service_init(struct service *service, struct device *device, const struct heap *heap, uint32_t uid,
		 uint64_t seed);
/* No session is left; the tensors that are left are freed, or where they are kept left as they are. */
void service_deinit(struct service *service);

/* Makes a new tensor's record (uid and name are set) its owner: names it, or gives it to `session` where it has no
 * name. */
void service_adopt(struct service *service, struct session *session, struct tensor *tensor);
/* A free of the tensor, and of its views with it, has arrived: from now on nobody finds them. No session has the
 * tensor any more; a session that has one of the views asks service_leaves_session. O(1). */
void service_mark_going(struct service *service, struct tensor *tensor);
/* Whether a tensor of a session's goes by another's request, its own or its base's; then the session no longer has
 * it.
 */
bool service_leaves_session(struct tensor *tensor);
/* Nobody finds a tensor any more, nor its views, and their names are free. Its space and its charge go with
 * service_release. O(1). */
void service_hide(struct service *service, struct tensor *tensor);
/* A tensor begins (by: 1) or ends (by: -1) to lie at this offset of each NPU. Views count nothing. */
void service_count_place(struct service *service, struct tensor *tensor, int64_t offset, int by);
/* Frees a tensor and its views, whoever owns them; returns how many went. Nothing is under way with them. What is
 * kept of them goes with the next persist_commit. Takes as long as there are views. */
unsigned service_release(struct service *service, struct tensor *tensor);
/* Ends what this process knows of a tensor: its bytes, and what is kept of it, are for the next one. */
void service_leave(struct service *service, struct tensor *tensor);

#endif
