/* The line of allocations that wait for room: one queue for each uid, and the uids take turns.
 *
 * The claimant of the line is the first that does not yield. Nothing passes it, so that a large request is not
 * starved by small ones; what does not stand in line leaves it the largest free extent (tensors.c). One that asks,
 * with what its uid has, for more than an equal share of the device yields in every second window of the clock, as
 * what it waits for may be its own to free, or never come. Owns no waiter or timer. */
#ifndef SERVICE_WAITING_H
#define SERVICE_WAITING_H

#include "daemon/device/device.h"
#include "daemon/service/limits.h"

struct service;

#define WAITING_WINDOW_NS UINT64_C(2000000000)

#define WAITING_NEVER UINT64_MAX

/* Embedded in its owner's call. */
struct waiter {
	struct limits_user *user; /* of a session */
	uint64_t bytes;		  /* of footprints, on all NPUs */
	uint64_t deadline_ns;	  /* WAITING_NEVER: none */
	int64_t from, to;	  /* offsets that it must have, by its fixed addresses; from >= to: none */

	/* The line's own. */
	uint64_t tried;		    /* in that round */
	struct waiter *next, *prev; /* of its uid */
};

struct waiting {
	struct limits_table *limits;
	struct limits_user *first; /* who have somebody in line, whose turn is next first */
	unsigned n;		   /* in line */
	uint64_t deadline_ns;	   /* none is earlier, and waiting_expired looks for the next */
	uint64_t round;
	bool room; /* something was freed or moved since the round began */
	bool look; /* somebody came or left, or a window began, since there was nobody to be tried */
};

void waiting_init(struct waiting *waiting, struct limits_table *limits);

/* Puts one in line for which there was no room. 0; RESOURCE_EXHAUSTED where its uid, or all, have as many in line
 * as they may (LIMITS_WAITING). */
int waiting_add(struct waiting *waiting, struct waiter *waiter, struct npumem_error *error);
/* Takes one out: granted, refused or no longer wanted. */
void waiting_remove(struct waiting *waiting, struct waiter *waiter);
/* The same, and its uid's turn was used: the others of it come after everybody's. */
void waiting_served(struct waiting *waiting, struct waiter *waiter);

/* Who is to be tried now, once; NULL: nobody before something happens. */
struct waiter *waiting_next(struct service *service);

/* For whom what is free is kept; NULL: nobody, as those in line yield. */
const struct waiter *waiting_claimant(const struct service *service);
/* When others may have their turn by the clock alone, and `look` is to be set; WAITING_NEVER. */
uint64_t waiting_window_end(const struct service *service);

/* The first whose deadline is over, or NULL. */
struct waiter *waiting_expired(struct waiting *waiting, uint64_t now_ns);

/* Sets bytes, from and to. False where not even an empty device has room for them (fits_empty_fits). */
bool waiting_measure(const struct device *device, const struct device_request *requests, unsigned n,
		     struct waiter *waiter);

#endif
