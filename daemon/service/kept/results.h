/* The effects of the requests of a session with a token: a request that is sent again, as its answer was lost, is
 * answered and not done twice. The record of a live tensor has the request that made it; every other effect is a
 * result, which is dropped when the client acknowledges the answer.
 *
 * At most RESULTS_MAX of each are kept for a session, within its user's LIMITS_REQUEST_BYTES. Beyond that, or
 * without memory or room in the state, the oldest are forgotten, and session->forgotten_below rises. */
#ifndef SERVICE_RESULTS_H
#define SERVICE_RESULTS_H

#include "daemon/service/kept/persist.h"

enum { RESULTS_MAX = 4096 };

struct result {
	struct result *next, *prev; /* of the session, the oldest first */
	uint32_t cell;
	struct results_cell kept;
};

/* Whether the effects of the session's current request are kept. */
static inline bool results_are_kept(const struct session *session)
{
	return session->has_token && session->request;
}

/* Prepares one result and n_changes beside it, both of the next commit. 0; RESOURCE_EXHAUSTED. */
int results_prepare(struct session *session, uint32_t n_changes, struct npumem_error *error);
/* Adds a result of the session's current request; if it is not prepared and there is no room, it is forgotten.
 * `what` has the kind and the members of that kind. Commits nothing. */
void results_put(struct session *session, struct results_cell what);
/* The session's current request made the tensor. Commits nothing. */
void results_add_made(struct session *session, struct record *record);
/* A tensor goes: adds a result for the request that made it, if that is kept. */
void results_gone(struct service *service, const struct tensor *tensor);
/* That result: a request of the session made a tensor, which is gone. */
void results_put_made(struct session *session, uint64_t request, uint32_t index, const struct tensor *tensor);

/* The client has the answers of all requests with lower ids. */
void results_answered(struct session *session, uint64_t below);

/* A request runs anew: drops its results, but not its deaths. */
void results_forget(struct session *session, uint64_t request);
/* How often the daemon died while the request ran. */
uint64_t results_deaths(const struct session *session, uint64_t request);
/* Counts one more death. Not prepared; without room it is forgotten. */
void results_add_death(struct session *session, uint64_t request);
/* The results of a request in the order in which they were put: the first, or the next one after `after`; or
 * NULL. */
const struct result *results_next(const struct session *session, uint64_t request, const struct result *after);
/* The living tensors that a request made, each in its place; `tensors` has n <= UINT32_MAX places, NULL at first.
 */
void results_made(const struct session *session, uint64_t request, struct tensor **tensors, size_t n);

/* results_add_made for a restored tensor, in any order; then the sort, once for each session. */
void results_restore_made(struct session *session, struct record *record);
void results_sort_made(struct session *session);
/* Adds a restored result. 0 or -ENOMEM. */
int results_restore(struct session *session, uint32_t cell, const struct results_cell *kept);
/* Drops all results of a session that ends. */
void results_deinit(struct session *session);
/* The same in this process only: the store keeps them. */
void results_leave(struct session *session);
/* Frees the spare result; before persist_deinit. */
void results_pool_deinit(struct persist *persist);

#endif
