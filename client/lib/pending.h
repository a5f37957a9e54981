/* The requests that are sent and not yet answered, by id: open addressing. Ids count up, so that a connection
 * whose answers come in order finds each at its home slot; one that stays open long costs the others a probe. */
#ifndef CLIENT_LIB_PENDING_H
#define CLIENT_LIB_PENDING_H

#include <npumem/client.h>

#include "client/lib/memory.h"
#include "proto/npumem.pb-c.h"

struct pending;

/* Takes one answer; called exactly once for each request. `response` has the result that the request asked for,
 * or is NULL where `error` says why there is none. (A refused submit brings both.)
 * 0, or -1 where the response makes no sense: the connection is then at fault. */
typedef int pending_done(const struct pending *pending, const Npumem__V1__Response *response,
			 const struct npumem_error *error);

/* A result that answers whatever it is. */
#define PENDING_ANY (~0u)

struct pending {
	uint64_t id;	 /* 0: a free slot */
	unsigned result; /* the case of Response.result that answers it */
	pending_done *done;
	npumem_callback *callback; /* of the user, for the form that does not wait */
	void *context;
	unsigned n; /* tensors asked for */
};

struct pending_table {
	struct pending *slots;
	unsigned n_slots; /* a power of two, or 0 */
	unsigned used;
};

/* Room for one more: 0 or -ENOMEM. */
int pending_reserve(struct pending_table *table, const struct memory *memory);
/* Adds one whose id is > 0 and not in the table; there is room. */
void pending_add(struct pending_table *table, const struct pending *pending);
/* Takes the one with this id out: false where there is none. */
bool pending_take(struct pending_table *table, uint64_t id, struct pending *pending);
/* Takes all of them out, in the order of their ids: an array that the caller frees, NULL where there are none. */
struct pending *pending_take_all(struct pending_table *table, unsigned *n);
void pending_deinit(struct pending_table *table, const struct memory *memory);

#endif
