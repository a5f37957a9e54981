/* A session: one client's connection to the service. Its anonymous tensors live as long as it does. */
#ifndef SERVICE_SESSION_H
#define SERVICE_SESSION_H

#include <sys/types.h>

#include "daemon/service/service.h"

/* Memory of the client's that is mapped here. */
struct segments_memory {
	uint8_t *base;
	uint64_t bytes;
	bool writable;
};

/* Where a session's shared memory comes from, and goes to. */
struct segments_source {
	/* Takes the memory that came with the request under way. 0; INVALID, RESOURCE_EXHAUSTED. */
	int (*take)(void *ctx, struct segments_memory *memory, struct npumem_error *error);
	void (*release)(void *ctx, const struct segments_memory *memory);
	/* Whether the memory at `base` has faulted: it is zeros since then, and the client's no more. On any
	 * thread, while it is mapped. NULL: it never does. */
	bool (*is_broken)(void *ctx, const uint8_t *base);
	void *ctx;
};

struct session {
	struct service *service;
	uint64_t id; /* > 0; not given again while the daemon lives */
	uint32_t uid;
	struct limits_user *user;
	pid_t pid; /* of the client, for people; 0 where it is not known */
	struct record *anonymous;
	uint64_t device_bytes, n_tensors; /* of those: whole footprints, over all NPUs; views included */
	struct segment *segments;
	uint64_t last_segment;
	const struct segments_source *segments_source; /* NULL: none can be shared */
	struct metrics_usage usage;
	void *peer; /* rpc's: whose requests they are; NULL: it has not asked yet */
	struct session *next, *prev;
};

/* The caller owns the storage. 0; RESOURCE_EXHAUSTED (too many sessions, or no host memory). */
int session_init(struct session *session, struct service *service, uint32_t uid, pid_t pid,
		 struct npumem_error *error);
/* Frees the session's anonymous tensors at once, with their views, also those that have names. */
void session_deinit(struct session *session);

/* Hides at most `most` of the session's anonymous tensors, and their views: for tensors_free. Returns how many. */
size_t session_hide(struct session *session, struct tensor **tensors, size_t most);

/* True for root and the daemon's own uid. */
static inline bool session_is_admin(const struct session *session)
{
	return session->uid == 0 || session->uid == session->service->uid;
}

#endif
