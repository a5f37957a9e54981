/* A session: one client's connection to the service. Its anonymous tensors live as long as it does. */
#ifndef SERVICE_SESSION_H
#define SERVICE_SESSION_H

#include <sys/types.h>

#include "daemon/service/kept/ids.h"
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

struct result;

/* The unnamed tensors of a session. Behind a pointer, so that however many they are, another session has them at
 * once where it goes on as this one. */
struct session_unnamed {
	struct record *first;
	uint64_t device_bytes, n; /* whole footprints, over all NPUs; views included */
};

struct session {
	struct service *service;
	uint64_t id; /* > 0; not given again while the daemon lives */
	uint32_t uid;
	struct limits_user *user;
	pid_t pid;			 /* of the client, for people; 0 where it is not known */
	struct session_unnamed *unnamed; /* its own */
	struct segment *segments;
	uint64_t last_segment;
	const struct segments_source *segments_source; /* NULL: none can be shared */
	struct metrics_usage usage;
	void *peer; /* rpc's: whose requests they are; NULL: it has not asked yet */

	/* What it goes on by after the daemon was started again (persist.h, results.h). */
	bool is_absent; /* its client is not there: what it counts among the uid's sessions is the other one */
	bool is_spent;	/* another one goes on as it: its own end is nobody's business */
	bool has_token;
	bool lingers; /* also where its client goes and the daemon stays */
	uint8_t token[PERSIST_TOKEN_BYTES];
	uint32_t cell;
	uint64_t request;	  /* whose effects come next: its id; 0: one whose effects are not kept */
	uint64_t answered_below;  /* the client has these answers */
	uint64_t forgotten_below; /* whether requests with lower ids were done is not known any more */
	uint64_t changed_below;	  /* nor do data requests with lower ids find what they found, */
	struct ids stale;	  /* nor these (stale.h) */
	struct record *made;	  /* tensors whose requests' answers the client may not have, the oldest first */
	size_t n_made;
	struct result *results;
	size_t n_results;
	struct session *next, *prev;
};

/* The caller owns the storage. 0; RESOURCE_EXHAUSTED (too many sessions, or no host memory). */
int session_init(struct session *session, struct service *service, uint32_t uid, pid_t pid,
		 struct npumem_error *error);
/* Frees the session's anonymous tensors at once, with their views, also those that have names. */
void session_deinit(struct session *session);

/* One that was found in cell `cell`: it waits for its client. 0 or -ENOMEM (then it has not begun). */
int session_restore(struct session *session, struct service *service, const struct persist_session *kept,
		    uint32_t cell);
/* Whether it has nothing yet, so that another one can come back as this one. */
bool session_is_fresh(const struct session *session);
/* An absent session comes back: `to`, which is fresh and of the same uid, goes on with its id, token, tensors and
 * results. `absent` is left with nothing, and to be ended. */
void session_return(struct session *absent, struct session *to);
/* The other way round: begins `absent` with all that the session has, but for its shared memory. 0; -ENOMEM: it
 * has not begun. */
int session_stay_away(struct session *session, struct session *absent);
/* Ends a session here alone: what is kept of it is for the next process. */
void session_leave(struct session *session);

/* In what order its anonymous tensors are hidden follows from here on from their handles alone, but for new ones,
 * which come first: so a session that is restored from this moment ends as this one does. */
void session_settle(struct session *session);
/* Hides at most `most` of the session's anonymous tensors, and their views: for tensors_free. Returns how many. */
size_t session_hide(struct session *session, struct tensor **tensors, size_t most);

/* True for root and the daemon's own uid. */
static inline bool session_is_admin(const struct session *session)
{
	return session->uid == 0 || session->uid == session->service->uid;
}

#endif
