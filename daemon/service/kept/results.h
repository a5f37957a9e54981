/* What the requests of a session with a token did, so that one that is sent again, as its answer did not come
 * through, is answered and not done twice. The tensors that a request made know it themselves while they live;
 * everything else is a result, which goes when the client says that it has the answer.
 *
 * At most RESULTS_MAX of both are kept of a session, and what its uid may hold (LIMITS_REQUEST_BYTES): beyond
 * that, or without memory or room in the state, the oldest are forgotten, and the session knows below which id
 * nothing is known. */
#ifndef SERVICE_RESULTS_H
#define SERVICE_RESULTS_H

#include "daemon/service/kept/persist.h"

enum { RESULTS_MAX = 4096 };

struct result {
	struct result *next, *prev; /* of the session, the oldest first */
	uint32_t cell;
	struct results_cell kept;
};

/* Whether what the session's request does is to be kept. */
static inline bool results_are_kept(const struct session *session)
{
	return session->has_token && session->request;
}

/* Room for one result and n_changes beside it, both of the next commit. 0; RESOURCE_EXHAUSTED. */
int results_prepare(struct session *session, uint32_t n_changes, struct npumem_error *error);
/* Puts one for the request that the session is at; what is not prepared and cannot be is forgotten. `what` has
 * kind and what belongs to it. Commits nothing. */
void results_put(struct session *session, struct results_cell what);
/* The tensor was made by its session's request. Commits nothing. */
void results_add_made(struct session *session, struct record *record);
/* A tensor goes: what made it, where that is to be kept. */
void results_gone(struct service *service, const struct tensor *tensor);
/* What is kept then: a tensor was made by a request of the session, and is gone. */
void results_put_made(struct session *session, uint64_t request, uint32_t index, const struct tensor *tensor);

/* The client has the answers of all requests with lower ids. */
void results_answered(struct session *session, uint64_t below);

/* A request is done anew: what was kept of its effects goes. */
void results_forget(struct session *session, uint64_t request);
/* How often the daemon died while the request ran. */
uint64_t results_deaths(const struct session *session, uint64_t request);
/* Once more. Prepares and commits nothing; where there is no room it is forgotten. */
void results_add_death(struct session *session, uint64_t request);
/* The first of a request's, in the order in which they were put; the next one after `after`. NULL: there is none.
 */
const struct result *results_next(const struct session *session, uint64_t request, const struct result *after);
/* The living tensors that a request made, each in its place; `tensors` has n <= UINT32_MAX places, NULL at first.
 */
void results_made(const struct session *session, uint64_t request, struct tensor **tensors, size_t n);

/* The same for one that was found in the store, in any order; then, once for all of a session. */
void results_restore_made(struct session *session, struct record *record);
void results_sort_made(struct session *session);
/* One that was found in the store. 0 or -ENOMEM. */
int results_restore(struct session *session, uint32_t cell, const struct results_cell *kept);
/* Forgets all that is kept of a session: it ends. */
void results_deinit(struct session *session);
/* The same in this process alone. */
void results_leave(struct session *session);
/* The spare one; before persist_deinit. */
void results_pool_deinit(struct persist *persist);

#endif
