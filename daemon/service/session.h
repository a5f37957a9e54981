/* A session: one client's connection to the service. Its anonymous tensors live as long as it does. */
#ifndef SERVICE_SESSION_H
#define SERVICE_SESSION_H

#include <sys/types.h>

#include "daemon/service/kept/ids.h"
#include "daemon/service/service.h"

/* Memory of the client's that is mapped here. */
struct session;

struct segments_memory {
	uint8_t *base;
	uint64_t bytes;
	bool writable;
	void *mapping; /* the source's own */
};

/* Where a session's shared memory comes from, and goes to. */
struct segments_source {
	/* Takes the memory that came with the request under way, where segments_check lets it: nothing is mapped
	 * before, as address space is nobody's. 0; INVALID, RESOURCE_EXHAUSTED: then it is given up. */
	int (*take)(void *ctx, const struct session *session, uint64_t id, struct segments_memory *memory,
		    struct npumem_error *error);
	void (*release)(void *ctx, const struct segments_memory *memory);
	/* Calls access(arg), which touches the memory. False where an access faulted: access was left in the
	 * midst. On any thread. NULL: it never faults. */
	bool (*reach)(const struct segments_memory *memory, void (*access)(void *arg), void *arg);
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
	struct limits_user *user;	 /* its account's: charges and turns; rights go by the uid */
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
	struct session *next, *prev;	       /* of all */
	struct session *user_next, *user_prev; /* of its user */
	struct session *bucket_next;	       /* of tokens with one hash (kept/tokens.h) */
};

/* The sessions that a session may know of, one after the other, while others begin and end: all of them for root
 * and the daemon's uid, its user's for any other. Sessions that begin after the walk are not found. */
struct session_walk {
	struct service *service;
	const struct session *at; /* the next one; NULL: there is none */
	bool is_all;
	struct session_walk *next, *prev; /* of service->walks */
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

/* Hides at most `most` of the session's anonymous tensors, and their views: for tensors_free. Returns how many. */
size_t session_hide(struct session *session, struct tensor **tensors, size_t most);

/* The storage is the caller's. A walk that has begun must end before its service. */
void session_walk_begin(struct session_walk *walk, const struct session *asking);
/* NULL: there is none any more. */
const struct session *session_walk_next(struct session_walk *walk);
void session_walk_end(struct session_walk *walk);

/* True for root and the daemon's own uid. */
static inline bool session_is_admin(const struct session *session)
{
	return session->uid == 0 || session->uid == session->service->uid;
}

#endif
