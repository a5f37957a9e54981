/* The allocations that wait for room: one queue for each user, and the users take turns.
 *
 * A request holds up its own user's later requests. It holds other users up in every second window of the clock,
 * so that nobody is kept out for longer than one; and only while it could be granted if they gave back what they
 * hold and compaction can move: not where tensors of its own user, a pin or its user's limit are in the way. What
 * it holds up depends on whether its place is known:
 *  - All its addresses are given: others are placed outside its range.
 *  - None is: the place is wherever enough is freed, so that later requests are not tried (small ones would starve
 *    it), and a request that is not queued leaves it the largest free extent (turn.c).
 * The first of each kind is the claimant. A request that mixes the two holds no other user up. Owns no waiter or
 * timer. */
#ifndef SERVICE_WAITING_H
#define SERVICE_WAITING_H

#include <stdbool.h>
#include <stdint.h>

struct device;
struct device_request;
struct limits_table;
struct limits_user;
struct npumem_error;
struct service;
struct waiting;

#define WAITING_WINDOW_NS UINT64_C(2000000000)

#define WAITING_NEVER UINT64_MAX

/* Embedded in its owner's call. */
struct waiter {
	struct limits_user *user; /* of a session */
	uint64_t bytes;		  /* of footprints, on all NPUs */
	uint64_t deadline_ns;	  /* WAITING_NEVER: none */
	int64_t from, to;	  /* offsets that it must have, by its fixed addresses; from >= to: none */
	int64_t least;		  /* bytes of each NPU of its largest tensor */
	bool reuses;		  /* one of its tensors may lie over others */
	int64_t anywhere;	  /* bytes of each NPU that its tensors without an address need in one piece */

	/* The line's own. */
	uint64_t tried;		       /* in which round */
	uint64_t search, search_ended; /* the number of its latest search; how many had begun when that ended */
	bool failed_beside;	       /* one that was under way at the same time has given back what it held */
	bool is_repeated;	       /* tried for this reason */
	struct waiter *next, *prev;    /* of its user */
};

void waiting_init(struct waiting *waiting, struct limits_table *limits);

/* Queues a request for which there was no room. 0; RESOURCE_EXHAUSTED: its user, or all, have reached
 * LIMITS_WAITING. */
int waiting_add(struct waiting *waiting, struct waiter *waiter, struct npumem_error *error);
/* Removes a request: granted, refused or no longer wanted. */
void waiting_remove(struct waiting *waiting, struct waiter *waiter);
/* The same, and its user's turn is used: the user goes behind all others. */
void waiting_served(struct waiting *waiting, struct waiter *waiter);

/* Whether it is not tried now, as its user's compaction goes first or its user lacks a share of a round. Room that
 * it does not take is for others meanwhile: the user decides how long the compaction waits. */
bool waiting_is_held_back(const struct waiter *waiter);

/* The waiting request to try now, once; NULL: none before something is freed. */
struct waiter *waiting_next(struct service *service);
/* The request, which reuses, is tried in many turns: a search. A user has one at a time; other requests are tried
 * beside it, and its deadline waits for its end. */
void waiting_search_begins(struct waiting *waiting, struct waiter *waiter);
void waiting_search_ended(struct waiting *waiting, struct waiter *waiter);
/* False where it is not queued. */
bool waiting_is_searched_for(const struct waiter *waiter);
/* An allocation of many turns holds its room no more; `waiter` is its own, and need not be queued. */
void waiting_gives_back(struct waiting *waiting, const struct waiter *waiter);
/* Lets waiting_next try the user's requests once more in this round. */
void waiting_try_again(struct waiting *waiting, struct limits_user *user);

/* The waiting requests that room is kept for; NULL: none. */
struct waiting_claims {
	const struct waiter *extent; /* for it the largest free extent, */
	const struct waiter *range;  /* for it its range of offsets */
};
/* The claims that a request of `user` must respect. */
struct waiting_claims waiting_claims(const struct service *service, const struct limits_user *user);
/* A request that claims room may claim it no more. */
void waiting_claims_changed(struct waiting *waiting);
/* When the end of a window may let other requests be tried: the caller calls waiting_claims_changed then. Or
 * WAITING_NEVER. */
uint64_t waiting_window_end(const struct service *service);

/* The first whose deadline is over, but not the one that is searched for; or NULL. */
struct waiter *waiting_expired(struct waiting *waiting, uint64_t now_ns);

/* Sets bytes, from, to, least, reuses and anywhere. False where not even an empty device has room for them
 * (fits_empty_fits). */
bool waiting_measure(const struct device *device, const struct device_request *requests, unsigned n,
		     struct waiter *waiter);

#endif
