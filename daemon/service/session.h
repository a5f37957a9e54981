/* A session: one client's connection to the service. Its anonymous tensors live as long as it does. */
#ifndef SERVICE_SESSION_H
#define SERVICE_SESSION_H

#include "daemon/service/tables.h"

struct persist_session;

/* Walks the sessions that a session may see, while others begin and end: all of them for root and the daemon's
 * uid, its user's for any other. Sessions that begin after the walk are not found. */
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

/* Begins a session that recovery found in cell `cell`; it waits for its client. 0 or -ENOMEM (then it has not
 * begun). */
int session_restore(struct session *session, struct service *service, const struct persist_session *kept,
		    uint32_t cell);
/* Whether it has nothing yet, so that it can continue another session. */
bool session_is_fresh(const struct session *session);
/* `to`, which is fresh and of the same uid, goes on with the id, token, tensors and results of `from`, but not
 * with its connection, user and shared memory. `from` has nothing left and must be ended. */
void session_hand_over(struct session *from, struct session *to);
/* Begins `detached` with all that the session has, but for its shared memory. 0; -ENOMEM: it has not begun. */
int session_stay_away(struct session *session, struct session *detached);
/* Drops a session's token and results from the store, and commits. */
void session_forget(struct session *session);
/* Ends a session in this process only: its cells are for the next process. */
void session_leave(struct session *session);

/* Hides at most `most` of the session's anonymous tensors, and their views: for tensors_free. Returns how many. */
size_t session_hide(struct session *session, struct tensor **tensors, size_t most);

/* The storage is the caller's. A walk that has begun must end before its service. */
void session_walk_begin(struct session_walk *walk, const struct session *asking);
/* NULL: there are no more. */
const struct session *session_walk_next(struct session_walk *walk);
void session_walk_end(struct session_walk *walk);

#endif
