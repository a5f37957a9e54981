/* The line of allocations that wait for room: by turns, one of each uid, in the order that they came.
 *
 * The claimant of the line is the first that does not yield. Nothing passes it, so that a large request is not
 * starved by small ones; what does not stand in line leaves it the largest free extent (tensors.c). One that asks,
 * with what its uid has, for more than an equal share of the device yields half of the time, as what it waits for
 * may be its own to free, or never come. Owns no waiter or timer. */
#ifndef SERVICE_WAITING_H
#define SERVICE_WAITING_H

#include "daemon/device/device.h"
#include "daemon/service/limits.h"

struct service;

enum {
	WAITING_LOOKS = 64, /* so far back the claimant is looked for */
};

#define WAITING_WINDOW_NS UINT64_C(2000000000)

#define WAITING_NEVER UINT64_MAX

/* Embedded in its owner's job. */
struct waiter {
	struct limits_user *user; /* of a session */
	uint64_t bytes;		  /* of footprints, on all NPUs */
	uint64_t deadline_ns;	  /* WAITING_NEVER: none */
	int64_t from, to;	  /* offsets that it must have, by its fixed addresses; from >= to: none */

	/* The line's own. */
	uint64_t turn;
	struct waiter *next, *prev;
};

struct waiting {
	struct limits_table *limits;
	struct waiter *first, *last;
	unsigned n;
	uint64_t deadline_ns; /* none is earlier */
	uint64_t turn;	      /* of the last one that was served */
	bool room; /* something was freed or moved since the line was begun to be tried, or it is another */

	/* Those before this one were tried since there was room, and yield; NULL: all were. */
	struct waiter *at;
	bool stuck;	   /* so was this one, and it does not */
	unsigned n_passed; /* that yielded */
	uint64_t window;   /* in which the line was begun to be tried */
};

void waiting_init(struct waiting *waiting, struct limits_table *limits);

/* 0; RESOURCE_EXHAUSTED where its uid, or all, have as many in line as they may (LIMITS_WAITING). */
int waiting_add(struct waiting *waiting, struct waiter *waiter, struct npumem_error *error);
/* Takes one out: granted, refused or no longer wanted. */
void waiting_remove(struct waiting *waiting, struct waiter *waiter);
/* Its turn was used: the others of its uid come after everybody's. */
void waiting_served(struct waiting *waiting, struct waiter *waiter);

/* Who is to be tried now; NULL: nobody before something happens. The owner of the line then calls waiting_served,
 * waiting_remove, or waiting_refused where there was no room for it. */
struct waiter *waiting_next(struct service *service);
void waiting_refused(struct service *service, struct waiter *waiter);

/* For whom what is free is kept; NULL: nobody, as those in line yield. */
const struct waiter *waiting_claimant(const struct service *service);
/* Whether nobody that does not yield comes before it. */
bool waiting_has_turn(const struct service *service, const struct waiter *waiter);
/* When others may have their turn by the clock alone; WAITING_NEVER. */
uint64_t waiting_window_end(const struct service *service);

/* The first whose deadline is over, or NULL. */
struct waiter *waiting_expired(struct waiting *waiting, uint64_t now_ns);
/* A time before which none is over, which waiting_expired looks for; WAITING_NEVER where there is none. */
uint64_t waiting_deadline(const struct waiting *waiting);

/* Sets bytes, from and to. False where not even an empty device has room for them (fits_empty_fits). */
bool waiting_measure(const struct device *device, const struct device_request *requests, unsigned n,
		     struct waiter *waiter);

#endif
