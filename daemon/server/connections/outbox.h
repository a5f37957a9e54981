/* Replies on their way out, in order. Short ones are put together, so that many are sent with one call; a long one
 * stays where it was written, as copying megabytes would keep the loop. */
#ifndef SERVER_OUTBOX_H
#define SERVER_OUTBOX_H

#include <stdbool.h>

#include "daemon/rpc/reply.h"

enum { OUTBOX_SPARES = 8 };

/* Buffers that are lent to whose replies are on their way, so that an idle connection has none. */
struct outbox_pool {
	struct buffer spare[OUTBOX_SPARES];
	unsigned n;
};

void outbox_pool_deinit(struct outbox_pool *pool);

struct outbox {
	const struct heap *heap;
	struct buffer sending; /* what the kernel takes now */
	size_t sent;	       /* of `sending` */
	struct outbox_part *first, *last;
	struct buffer tail; /* behind them; new replies are appended here */
	size_t parts_bytes;
};

void outbox_init(struct outbox *outbox, const struct heap *heap);
void outbox_deinit(struct outbox *outbox);

/* Bytes that have not been sent. */
static inline size_t outbox_unsent(const struct outbox *outbox)
{
	return outbox->sending.used - outbox->sent + outbox->parts_bytes + outbox->tail.used;
}

/* The memory that they take: what was sent of a reply is not free before all of it was. */
static inline size_t outbox_held(const struct outbox *outbox)
{
	return outbox->sending.used + outbox->parts_bytes + outbox->tail.used;
}

/* Makes the tail a lent buffer, where it has none of its own and there is one. */
void outbox_borrow(struct outbox *outbox, struct outbox_pool *pool);
/* Gives back what is empty. */
void outbox_return(struct outbox *outbox, struct outbox_pool *pool);

/* Adds a reply; takes over its bytes, or copies them. 0 or -ENOMEM (nothing changed). */
int outbox_put(struct outbox *outbox, struct buffer *reply);

/* What is to be sent next, *n bytes; NULL: nothing. Then how much of it was. */
const uint8_t *outbox_front(struct outbox *outbox, size_t *n);
void outbox_take(struct outbox *outbox, size_t n);

#endif
