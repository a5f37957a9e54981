/* The line of allocations that wait for room: by turns, one of each uid, in the order that they came.
 *
 * Only the head is tried. Nothing passes it, so that a large request is not starved by small ones; what does not
 * stand in line leaves it the largest free extent (tensors.c). Owns no waiter, clock or timer. */
#ifndef SERVICE_WAITING_H
#define SERVICE_WAITING_H

#include "daemon/device/device.h"

enum { WAITING_OF_ONE_MAX = 64 }; /* of one owner */

#define WAITING_NEVER UINT64_MAX

/* Embedded in its owner's job. */
struct waiter {
	uint32_t uid;
	const void *owner;
	uint64_t deadline_ns; /* WAITING_NEVER: none */
	int64_t from, to;     /* offsets that it must have, by its fixed addresses; from >= to: none */

	/* The line's own. */
	uint64_t turn;
	struct waiter *next, *prev;
};

struct waiting {
	struct waiter *first, *last;
	unsigned n;
	uint64_t turn; /* of the last one that was served */
	bool room;     /* something was freed or moved since the head was tried, or it is another */
	bool serving;
	bool held; /* what is free is being moved about, or summed up: nobody is served now */
};

/* 0; RESOURCE_EXHAUSTED where its owner has too many in line. */
int waiting_add(struct waiting *waiting, struct waiter *waiter, struct npumem_error *error);
/* Takes one out: granted, refused or no longer wanted. */
void waiting_remove(struct waiting *waiting, struct waiter *waiter);
/* Its turn was used: the others of its uid come after everybody's. */
void waiting_served(struct waiting *waiting, struct waiter *waiter);

/* The first whose deadline is over, or NULL. */
struct waiter *waiting_expired(const struct waiting *waiting, uint64_t now_ns);
/* The earliest deadline; WAITING_NEVER where there is none. */
uint64_t waiting_deadline(const struct waiting *waiting);

/* Sets from and to. False where not even an empty device has room for them (trial_fits). */
bool waiting_measure(const struct device *device, const struct device_request *requests, unsigned n,
		     struct waiter *waiter);

#endif
