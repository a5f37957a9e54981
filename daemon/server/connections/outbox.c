/* Invariant: the order of sending is `sending`, the parts, the tail. There are parts only if a reply was too long
 * to be copied. */
#include "daemon/server/connections/outbox.h"

#include <errno.h>
#include <string.h>

enum {
	COPIED_BYTES_MAX = 64 << 10,
	SPARE_BYTES_MAX = 2 << 20, /* a larger buffer is not kept for other replies */
};

struct outbox_part {
	struct buffer bytes;
	struct outbox_part *next;
};

void outbox_init(struct outbox *outbox, const struct heap *heap)
{
	*outbox = (struct outbox){.heap = heap};
	buffer_init(&outbox->sending, heap);
	buffer_init(&outbox->tail, heap);
}

static struct buffer take_first(struct outbox *outbox)
{
	struct outbox_part *part = outbox->first;
	struct buffer bytes = part->bytes;

	outbox->first = part->next;
	if (!outbox->first)
		outbox->last = NULL;
	outbox->parts_bytes -= bytes.used;
	heap_free(outbox->heap, part);
	return bytes;
}

void outbox_deinit(struct outbox *outbox)
{
	while (outbox->first) {
		struct buffer bytes = take_first(outbox);

		buffer_deinit(&bytes);
	}
	buffer_deinit(&outbox->sending);
	buffer_deinit(&outbox->tail);
}

void outbox_pool_deinit(struct outbox_pool *pool)
{
	while (pool->n)
		buffer_deinit(&pool->spare[--pool->n]);
}

void outbox_borrow(struct outbox *outbox, struct outbox_pool *pool)
{
	if (!outbox->tail.room && pool->n)
		outbox->tail = pool->spare[--pool->n];
}

static void return_one(struct buffer *buffer, struct outbox_pool *pool)
{
	if (buffer->used || !buffer->room)
		return;
	if (pool->n == OUTBOX_SPARES || buffer->room > SPARE_BYTES_MAX) {
		buffer_deinit(buffer);
		return;
	}
	pool->spare[pool->n++] = *buffer;
	buffer_init(buffer, buffer->heap);
}

void outbox_return(struct outbox *outbox, struct outbox_pool *pool)
{
	return_one(&outbox->tail, pool);
	return_one(&outbox->sending, pool);
}

static void swap(struct buffer *a, struct buffer *b)
{
	struct buffer kept = *a;

	*a = *b;
	*b = kept;
}

static int copy(struct buffer *tail, const struct buffer *reply)
{
	if (buffer_reserve(tail, reply->used))
		return -ENOMEM;
	memcpy(tail->bytes + tail->used, reply->bytes, reply->used);
	tail->used += reply->used;
	return 0;
}

/* Makes a part of the tail. 0 or -ENOMEM. */
static int cut(struct outbox *outbox)
{
	struct outbox_part *part = heap_alloc(outbox->heap, sizeof(*part));

	if (!part)
		return -ENOMEM;
	buffer_init(&part->bytes, outbox->heap);
	swap(&part->bytes, &outbox->tail);
	part->next = NULL;
	if (outbox->last)
		outbox->last->next = part;
	else
		outbox->first = part;
	outbox->last = part;
	outbox->parts_bytes += part->bytes.used;
	return 0;
}

int outbox_put(struct outbox *outbox, struct buffer *reply)
{
	struct buffer *tail = &outbox->tail;
	bool is_short = reply->used <= COPIED_BYTES_MAX;

	/* A short reply is copied into an empty lent buffer with room. */
	if (tail->used ? is_short || cut(outbox) : is_short && reply->used <= tail->room)
		return copy(tail, reply);
	swap(&outbox->tail, reply);
	return 0;
}

const uint8_t *outbox_front(struct outbox *outbox, size_t *n)
{
	if (!outbox->sending.used && outbox->first) {
		buffer_deinit(&outbox->sending);
		outbox->sending = take_first(outbox);
	} else if (!outbox->sending.used) {
		swap(&outbox->sending, &outbox->tail);
	}
	*n = outbox->sending.used - outbox->sent;
	return *n ? outbox->sending.bytes + outbox->sent : NULL;
}

void outbox_take(struct outbox *outbox, size_t n)
{
	outbox->sent += n;
	if (outbox->sent == outbox->sending.used)
		outbox->sent = outbox->sending.used = 0;
}
