/* What the random traces rely on: each thing that may be wrong with an arena is found, and called what it is. */
#include "tests/support/test.h"

#include "daemon/device/arena/arena.h"
#include "daemon/device/arena/free_blocks.h"

enum { LINES = 64, ARENA_BYTES = LINES * ARENA_ALIGN_MAX };

/* Taken, free and taken again, in whole lines from the start; the rest is free. */
struct sound {
	struct arena *arena;
	struct block *first, *hole, *last, *rest;
};

static void sound_open(struct sound *sound)
{
	ck_assert_int_eq(arena_new(&heap_libc, ARENA_BYTES, &sound->arena), 0);
	ck_assert_int_eq(arena_reserve(sound->arena, 0, 128, NULL), 0);
	ck_assert_int_eq(arena_reserve(sound->arena, 384, 128, NULL), 0);
	struct block *block = sound->arena->edge.after;
	sound->first = block;
	sound->hole = block->after;
	sound->last = sound->hole->after;
	sound->rest = sound->last->after;
	ck_assert_ptr_eq(sound->rest->after, &sound->arena->edge);
	ck_assert_ptr_null(arena_check(sound->arena));
}

/* What was changed is as it was, or the arena would not free what it has. */
static void sound_close(struct sound *sound)
{
	ck_assert_ptr_null(arena_check(sound->arena));
	arena_free(sound->arena);
}

FIXTURE_OBJECT(struct sound, sound, sound_open(&sound), sound_close(&sound))

/* With a member set to something else for the time of one look. */
#define WRONG(member, value, text)                                                                                \
	do {                                                                                                      \
		__typeof__(1 ? member : member) was = member;                                                     \
		member = value;                                                                                   \
		ck_assert_pstr_eq(arena_check(sound.arena), text);                                                \
		member = was;                                                                                     \
	} while (0)

TEST(test_blocks_in_order)
{
	WRONG(sound.hole->offset, sound.hole->offset + 1, "blocks do not tile the arena");
	WRONG(sound.hole->size, 0, "blocks do not tile the arena");
	WRONG(sound.hole->size, sound.hole->size + 1, "blocks do not tile the arena");
	WRONG(sound.last->before, sound.first, "a neighbour link is broken");
	WRONG(sound.arena->edge.before, sound.last, "blocks do not reach the end");
	WRONG(sound.arena->size, sound.arena->size + LINE_QUANTA, "blocks do not reach the end");
	WRONG(sound.arena->free, sound.arena->free - 1, "the free count is wrong");
	WRONG(sound.arena->n_unused, sound.arena->n_unused - 1, "block entries are lost");
}

TEST(test_neighbours_and_starts)
{
	WRONG(sound.last->taken, false, "two free neighbours are not merged");
	WRONG(sound.first->has_free_after, false, "a block is wrong about its neighbours");
	WRONG(sound.first->has_free_before, true, "a block is wrong about its neighbours");
	WRONG(sound.arena->at[1], sound.first, "a line misses the block that starts in it");
	block_bitmap_remove(&sound.arena->starts, 3, true);
	ck_assert_pstr_eq(arena_check(sound.arena), "a line misses the block that starts in it");
	block_bitmap_add(&sound.arena->starts, 3);
	block_bitmap_add(&sound.arena->starts, 2);
	ck_assert_pstr_eq(arena_check(sound.arena), "a line has a start inside a block");
	block_bitmap_remove(&sound.arena->starts, 2, true);
}

TEST(test_heaps_of_free_blocks)
{
	uint64_t hole = 2, nobody = 5; /* lines */
	WRONG(sound.arena->heaps[hole], &sound.arena->edge, "a heap is empty");
	WRONG(sound.arena->heaps[hole], sound.first, "a heap is out of order");
	WRONG(sound.arena->heaps[hole], sound.rest, "a heap is out of order");
	WRONG(sound.hole->link, &sound.rest->sub[0], "a heap is out of order");
	WRONG(sound.hole->sub[0], sound.rest, "a heap is out of order");
	WRONG(sound.hole->sub[1], sound.hole, "a heap is out of order"); /* and has no end */
	WRONG(sound.arena->heaps[nobody], &sound.arena->edge, NULL);
	block_bitmap_remove(&sound.arena->sizes, hole, true);
	ck_assert_pstr_eq(arena_check(sound.arena), "a free block is in no heap");
	block_bitmap_add(&sound.arena->sizes, hole);
	sound.hole->sub[0] = sound.rest;
	sound.rest->link = &sound.hole->sub[0];
	ck_assert_pstr_eq(arena_check(sound.arena), "a block is in a heap it does not belong to");
	sound.hole->sub[0] = &sound.arena->edge;
	sound.rest->link = &sound.arena->heaps[sound.rest->size / LINE_QUANTA];
}
