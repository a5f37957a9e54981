/* A large block that was freed serves the next allocation of about its size. What is given back:
 * integration/test_attack_closing.py. */
#include "daemon/server/process/blocks.h"

#include "tests/support/test.h"

enum { LARGE = 1 << 20, MANY = 200 };

TEST(a_freed_block_serves_again)
{
	void *block, *other;
	ck_assert_int_eq(blocks_open(), 0);
	block = heap_alloc(&blocks_heap, LARGE);
	memset(block, 1, LARGE);
	heap_free(&blocks_heap, block);
	/* Less than it, by too much. */
	other = heap_alloc(&blocks_heap, LARGE / 2);
	ck_assert_ptr_ne(other, block);
	heap_free(&blocks_heap, other);
	/* More than it. */
	other = heap_alloc(&blocks_heap, 2 * LARGE);
	ck_assert_ptr_ne(other, block);
	heap_free(&blocks_heap, other);
#ifndef __SANITIZE_ADDRESS__
	other = heap_alloc(&blocks_heap, LARGE - LARGE / 8);
	ck_assert_ptr_eq(other, block);
	heap_free(&blocks_heap, other);
#endif
	heap_free(&blocks_heap, NULL);
	blocks_close();
}

TEST(more_than_is_kept, .is_slow = true)
{
	static void *blocks[MANY];
	ck_assert_int_eq(blocks_open(), 0);
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < MANY; i++) {
			blocks[i] = heap_alloc(&blocks_heap, LARGE);
			memset(blocks[i], i, LARGE);
		}
		for (int i = 0; i < MANY; i++) {
			ck_assert_int_eq(((uint8_t *)blocks[i])[LARGE - 1], i);
			heap_free(&blocks_heap, blocks[i]);
		}
	}
	blocks_close();
}

/* It is malloc then. */
TEST(before_and_after_there_is_a_thread)
{
	void *early = heap_alloc(&blocks_heap, LARGE), *late;
	ck_assert_int_eq(blocks_open(), 0);
	heap_free(&blocks_heap, early);
	late = heap_alloc(&blocks_heap, LARGE);
	blocks_close();
	heap_free(&blocks_heap, late);
}
