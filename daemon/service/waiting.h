/* The line of allocations that wait for room: one queue for each user, and the users take turns.
 *
 * A request holds other users up only while it could be granted if they gave back what they hold and compaction
 * can move. Where tensors of its own user, a pin or its user's limit are in the way, it holds up its own user's
 * later requests alone. There are two ways to hold a request up:
 *  - By one without addresses: nothing behind it in the line is tried, so that a large request is not starved by
 * small ones, and a request outside the line leaves it the largest free extent (tensors.c).
 *  - By one with addresses only: others are placed outside its range.
 * The first of each kind is the claimant. A request that mixes the two holds no other user up. A request that
 * asks, with what its user has, for more than an equal share of the device holds others up in every second window
 * of the clock. Owns no waiter or timer. */
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
	bool reuses;		  /* one of them may lie over others */
	int64_t anywhere;	  /* bytes of each NPU that its tensors without an address need in one piece */

	/* The line's own. */
	uint64_t tried;		    /* in that round */
	struct waiter *next, *prev; /* of its uid */
};

void waiting_init(struct waiting *waiting, struct limits_table *limits);

/* Puts one in line for which there was no room. 0; RESOURCE_EXHAUSTED where its uid, or all, have as many in line
 * as they may (LIMITS_WAITING). */
int waiting_add(struct waiting *waiting, struct waiter *waiter, struct npumem_error *error);
/* Takes one out: granted, refused or no longer wanted. */
void waiting_remove(struct waiting *waiting, struct waiter *waiter);
/* The same, and its uid's turn was used: the others of it come after everybody's. */
void waiting_served(struct waiting *waiting, struct waiter *waiter);

/* The waiting request to try now, once; NULL: none before something is freed. */
struct waiter *waiting_next(struct service *service);

/* The waiting request that free room is kept for; NULL: none. */
struct waiting_claims {
	const struct waiter *extent; /* the largest free extent, */
	const struct waiter *range;  /* and its range of offsets */
};
/* What a request of `user` has to leave alone. */
struct waiting_claims waiting_claims(const struct service *service, const struct limits_user *user);
/* When others may have their turn by the clock alone, and `look` is to be set; WAITING_NEVER. */
uint64_t waiting_window_end(const struct service *service);

/* The first whose deadline is over, or NULL. */
struct waiter *waiting_expired(struct waiting *waiting, uint64_t now_ns);

/* Sets bytes, from, to, least, reuses and anywhere. False where not even an empty device has room for them
 * (fits_empty_fits). */
bool waiting_measure(const struct device *device, const struct device_request *requests, unsigned n,
		     struct waiter *waiter);

#endif
