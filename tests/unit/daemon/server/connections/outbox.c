/* Replies of every length, sent in every piece, come out as they went in. */
#include "daemon/server/connections/outbox.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

static struct buffer reply_of(size_t bytes, unsigned seed)
{
	struct buffer reply;
	buffer_init(&reply, &heap_libc);
	ck_assert_int_eq(buffer_reserve(&reply, bytes), 0);
	for (size_t i = 0; i < bytes; i++)
		reply.bytes[i] = (uint8_t)(seed + i * 31);
	reply.used = bytes;
	return reply;
}

TEST(replies_come_out_in_order, .to = 4)
{
	enum { REPLIES = 200 };
	struct outbox outbox;
	struct buffer expected, put;
	size_t sent = 0, n;
	const uint8_t *bytes;
	srand((unsigned)_i);
	outbox_init(&outbox, &heap_libc);
	buffer_init(&expected, &heap_libc);
	for (unsigned i = 0; i < REPLIES; i++) {
		put = reply_of(rand() % 4 ? (size_t)rand() % 300 : (size_t)rand() % 200000, i);
		ck_assert_int_eq(buffer_reserve(&expected, put.used), 0);
		if (put.used)
			memcpy(expected.bytes + expected.used, put.bytes, put.used);
		expected.used += put.used;
		ck_assert_int_eq(outbox_put(&outbox, &put), 0);
		buffer_deinit(&put);
		ck_assert_uint_eq(outbox_unsent(&outbox), expected.used - sent);
		while (rand() % 3 && (bytes = outbox_front(&outbox, &n))) {
			n = rand() % 2 ? n : (size_t)rand() % (n + 1);
			ck_assert_int_eq(memcmp(bytes, expected.bytes + sent, n), 0);
			outbox_take(&outbox, n);
			sent += n;
		}
	}
	while (rand() % 50 && (bytes = outbox_front(&outbox, &n))) {
		ck_assert_int_eq(memcmp(bytes, expected.bytes + sent, n), 0);
		outbox_take(&outbox, n);
		sent += n;
	}
	ck_assert_uint_eq(outbox_unsent(&outbox), expected.used - sent);
	outbox_deinit(&outbox);
	buffer_deinit(&expected);
}

TEST(empty_buffers_go_round)
{
	struct outbox_pool pool = {.n = 0};
	struct outbox outbox;
	struct buffer reply;
	size_t n;
	outbox_init(&outbox, &heap_libc);
	outbox_borrow(&outbox, &pool);
	ck_assert_uint_eq(outbox.tail.room, 0);
	ck_assert_int_eq(buffer_reserve(&outbox.tail, 100), 0);
	const uint8_t *lent = outbox.tail.bytes;
	outbox_return(&outbox, &pool);
	ck_assert_uint_eq(pool.n, 1);
	outbox_borrow(&outbox, &pool);
	ck_assert_ptr_eq(outbox.tail.bytes, lent);
	/* A short reply is copied into it, and it comes back when that is sent. */
	reply = reply_of(50, 3);
	ck_assert_int_eq(outbox_put(&outbox, &reply), 0);
	buffer_deinit(&reply);
	outbox_return(&outbox, &pool);
	ck_assert_uint_eq(pool.n, 0);
	ck_assert_uint_eq(outbox_held(&outbox), 50);
	ck_assert_ptr_eq(outbox_front(&outbox, &n), lent);
	outbox_take(&outbox, 20);
	ck_assert_uint_eq(outbox_unsent(&outbox), 30);
	ck_assert_uint_eq(outbox_held(&outbox), 50);
	outbox_take(&outbox, 30);
	ck_assert_uint_eq(outbox_held(&outbox), 0);
	outbox_return(&outbox, &pool);
	ck_assert_uint_eq(pool.n, 1);
	/* No more than there are places for, and none that is large. */
	for (unsigned i = 0; i < 2 * OUTBOX_SPARES; i++) {
		ck_assert_int_eq(buffer_reserve(&outbox.tail, i % 2 ? 8 << 20 : 100), 0);
		outbox_return(&outbox, &pool);
	}
	ck_assert_uint_eq(pool.n, OUTBOX_SPARES);
	for (unsigned i = 0; i < pool.n; i++)
		ck_assert_uint_lt(pool.spare[i].room, 8 << 20);
	outbox_deinit(&outbox);
	outbox_pool_deinit(&pool);
}

static size_t n_left;

static void *few(void *ctx, size_t bytes)
{
	(void)ctx;
	return n_left && n_left-- ? malloc(bytes) : NULL;
}

static void release(void *ctx, void *memory)
{
	(void)ctx;
	free(memory);
}

TEST(without_memory_nothing_changes)
{
	static const struct heap heap = {few, release, NULL};
	struct buffer first = reply_of(10, 1), second = reply_of(100000, 2);
	struct outbox outbox;
	first.heap = second.heap = &heap;
	outbox_init(&outbox, &heap);
	n_left = 0;
	ck_assert_int_eq(outbox_put(&outbox, &first), 0);
	/* Neither a part nor a longer tail. */
	ck_assert_int_lt(outbox_put(&outbox, &second), 0);
	ck_assert_uint_eq(outbox_unsent(&outbox), 10);
	ck_assert_uint_eq(second.used, 100000);
	n_left = 1;
	ck_assert_int_eq(outbox_put(&outbox, &second), 0);
	ck_assert_uint_eq(outbox_unsent(&outbox), 100010);
	outbox_deinit(&outbox);
	buffer_deinit(&first);
	buffer_deinit(&second);
}
