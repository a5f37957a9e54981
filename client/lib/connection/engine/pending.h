/* The messages that are sent and not yet answered, by id: open addressing. Ids count up, so that a connection
 * whose answers come in order finds each at its home slot; one that stays open long costs the others a probe. */
#ifndef CLIENT_LIB_PENDING_H
#define CLIENT_LIB_PENDING_H

#include <stdbool.h>
#include <stdint.h>

#include "client/lib/connection/memory.h"

struct pending {
	uint64_t id;			/* 0: a free slot */
	struct npumem_request *request; /* NULL: the answer will be dropped */
	uint8_t *to;			/* where its data belong; NULL: it has none, or its request takes them */
	size_t bytes;
	struct kept *kept; /* the message, to be sent again; NULL: it is not */
	bool is_again;	   /* of the connection's own, to go on with a session: may not be refused */
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
/* The one with this id, or NULL; until the table changes. */
struct pending *pending_find(const struct pending_table *table, uint64_t id);
/* Takes the one with this id out: false where there is none. */
bool pending_take(struct pending_table *table, uint64_t id, struct pending *pending);
void pending_deinit(struct pending_table *table, const struct memory *memory);

#endif
