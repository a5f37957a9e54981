/* Replies to be sent, in order. Short ones are joined, so that many are sent with one call; a long one is not
 * copied, as megabytes would keep the loop busy. */
#ifndef SERVER_OUTBOX_H
#define SERVER_OUTBOX_H

#include <stdbool.h>

#include "daemon/rpc/reply.h"

enum { OUTBOX_SPARES = 8 };

/* Buffers that are lent to connections with replies, so that an idle one has none. */
struct outbox_pool {
	struct buffer spare[OUTBOX_SPARES];
	unsigned n;
};

void outbox_pool_deinit(struct outbox_pool *pool);

struct outbox {
	const struct heap *heap;
	struct buffer sending; /* being sent now */
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

/* The memory of the replies: that of a reply is held until all of it was sent. */
static inline size_t outbox_held(const struct outbox *outbox)
{
	return outbox->sending.used + outbox->parts_bytes + outbox->tail.used;
}

/* Lends the tail a buffer, if it has none and the pool has one. */
void outbox_borrow(struct outbox *outbox, struct outbox_pool *pool);
/* Gives empty buffers back. */
void outbox_return(struct outbox *outbox, struct outbox_pool *pool);

/* Adds a reply; takes over its bytes, or copies them. 0 or -ENOMEM (nothing changed). */
int outbox_put(struct outbox *outbox, struct buffer *reply);

/* The next *n bytes to send; NULL: none. outbox_take removes those that were sent. */
const uint8_t *outbox_front(struct outbox *outbox, size_t *n);
void outbox_take(struct outbox *outbox, size_t n);

#endif
