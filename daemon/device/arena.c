/* Blocks tile the arena in order of offset. Free neighbours are always merged, taken ones never. A free block is
 * in the bin of its size; a set bit in the two bitmaps means a non-empty bin. Blocks live in one growing array and
 * name each other by index, so that growing it moves nothing that is pointed to.
 * Sizes inside are in quanta of 4 bytes. */
#include "daemon/device/arena.h"

#include <assert.h>
#include <errno.h>

#include "daemon/device/starts.h"

enum {
	SUB_BITS = 5,
	N_SUB = 1 << SUB_BITS,
	N_CLASSES = 25, /* sizes below 2^29 quanta */
	NONE = 0,	/* block 0 is never used, so that zeroed links point nowhere */
	FIRST_CAPACITY = 64,
	QUANTA_MAX = 1 << 28,
};

struct block {
	uint32_t offset, size;
	uint32_t before, after; /* neighbours in order of offset */
	uint32_t prev, next;	/* in the bin of a free block; `next` also chains unused entries */
	bool taken;
	void *tag;
};

struct arena {
	const struct heap *heap;
	uint32_t size; /* in quanta */
	uint64_t free; /* in quanta */
	struct block *blocks;
	uint32_t capacity, unused, n_unused;
	uint32_t spare; /* unused entries that only arena_release may take */
	struct starts starts;
	uint32_t *at; /* the block that starts at a quantum; read only where `starts` has it */
	uint32_t classes;
	uint32_t subs[N_CLASSES];
	uint32_t bins[N_CLASSES][N_SUB];
};

struct bin {
	unsigned class, sub;
};

static unsigned log2_floor(uint32_t x)
{
	return 31 - (unsigned)__builtin_clz(x);
}

/* The bin that a free block of `size` belongs to: exact below 32 quanta, then 32 steps an octave. */
static struct bin bin_of(uint32_t size)
{
	if (size < N_SUB)
		return (struct bin){0, size};
	unsigned log = log2_floor(size);
	return (struct bin){log - SUB_BITS + 1, (size >> (log - SUB_BITS)) - N_SUB};
}

/* The lowest bin whose every block has at least `size`. */
static struct bin bin_above(uint32_t size)
{
	if (size >= N_SUB)
		size += (UINT32_C(1) << (log2_floor(size) - SUB_BITS)) - 1;
	return bin_of(size);
}

/* The first non-empty bin at or above `bin`; false where there is none. */
static bool bin_find(const struct arena *arena, struct bin *bin)
{
	if (bin->class >= N_CLASSES)
		return false;
	uint32_t subs = arena->subs[bin->class] & (UINT32_MAX << bin->sub);
	if (!subs) {
		uint32_t classes = arena->classes & (uint32_t)(UINT64_MAX << (bin->class + 1));
		if (!classes)
			return false;
		bin->class = (unsigned)__builtin_ctz(classes);
		subs = arena->subs[bin->class];
	}
	bin->sub = (unsigned)__builtin_ctz(subs);
	return true;
}

static void bin_push(struct arena *arena, uint32_t index)
{
	struct block *block = &arena->blocks[index];
	struct bin bin = bin_of(block->size);
	uint32_t *head = &arena->bins[bin.class][bin.sub];
	block->taken = false;
	block->tag = NULL;
	block->prev = NONE;
	block->next = *head;
	if (*head)
		arena->blocks[*head].prev = index;
	*head = index;
	arena->subs[bin.class] |= UINT32_C(1) << bin.sub;
	arena->classes |= UINT32_C(1) << bin.class;
	arena->free += block->size;
}

static void bin_remove(struct arena *arena, uint32_t index)
{
	struct block *block = &arena->blocks[index];
	struct bin bin = bin_of(block->size);
	if (block->prev)
		arena->blocks[block->prev].next = block->next;
	else
		arena->bins[bin.class][bin.sub] = block->next;
	if (block->next)
		arena->blocks[block->next].prev = block->prev;
	if (!arena->bins[bin.class][bin.sub]) {
		arena->subs[bin.class] &= ~(UINT32_C(1) << bin.sub);
		if (!arena->subs[bin.class])
			arena->classes &= ~(UINT32_C(1) << bin.class);
	}
	arena->free -= block->size;
}

/* Makes `n` unused entries available beside the spare ones, so that what follows cannot fail. */
static int blocks_ensure(struct arena *arena, uint32_t n)
{
	uint32_t wanted = n + arena->spare;
	if (arena->n_unused >= wanted)
		return 0;
	uint32_t capacity = arena->capacity ? arena->capacity * 2 : FIRST_CAPACITY;
	while (capacity - arena->capacity < wanted)
		capacity *= 2;
	struct block *blocks = heap_alloc(arena->heap, (size_t)capacity * sizeof(*blocks));
	if (!blocks)
		return -ENOMEM;
	if (arena->capacity)
		memcpy(blocks, arena->blocks, (size_t)arena->capacity * sizeof(*blocks));
	heap_free(arena->heap, arena->blocks);
	arena->blocks = blocks;
	uint32_t from = arena->capacity ? arena->capacity : 1;
	for (uint32_t i = capacity; i-- > from;) {
		blocks[i].next = arena->unused;
		arena->unused = i;
		arena->n_unused++;
	}
	arena->capacity = capacity;
	return 0;
}

static uint32_t block_take_entry(struct arena *arena)
{
	uint32_t index = arena->unused;
	assert(index);
	arena->unused = arena->blocks[index].next;
	arena->n_unused--;
	return index;
}

/* Forgets a block whose bytes its left neighbour has taken over. */
static void block_drop(struct arena *arena, uint32_t index)
{
	struct block *block = &arena->blocks[index];
	starts_remove(&arena->starts, block->offset);
	arena->blocks[block->before].after = block->after;
	if (block->after)
		arena->blocks[block->after].before = block->before;
	block->next = arena->unused;
	arena->unused = index;
	arena->n_unused++;
}

/* Cuts `size` quanta off the front of a block that is in no bin; the rest becomes a block of the same state and
 * tag, in no bin either. Returns the rest. */
static uint32_t block_split(struct arena *arena, uint32_t index, uint32_t size)
{
	uint32_t rest = block_take_entry(arena);
	struct block *a = &arena->blocks[index], *b = &arena->blocks[rest];
	*b = (struct block){.offset = a->offset + size,
			    .size = a->size - size,
			    .before = index,
			    .after = a->after,
			    .taken = a->taken,
			    .tag = a->tag};
	a->size = size;
	a->after = rest;
	if (b->after)
		arena->blocks[b->after].before = rest;
	starts_add(&arena->starts, b->offset);
	arena->at[b->offset] = rest;
	return rest;
}

/* Takes [start, start + size) out of a free block that holds it. Needs two unused entries. */
static void block_carve(struct arena *arena, uint32_t index, uint32_t start, uint32_t size, void *tag)
{
	bin_remove(arena, index);
	uint32_t front = start - arena->blocks[index].offset;
	if (front) {
		uint32_t rest = block_split(arena, index, front);
		bin_push(arena, index);
		index = rest;
	}
	if (arena->blocks[index].size > size)
		bin_push(arena, block_split(arena, index, size));
	arena->blocks[index].taken = true;
	arena->blocks[index].tag = tag;
}

/* An alignment in quanta. Beyond the largest arena only offset 0 is aligned, whatever it is. */
static uint32_t align_of(uint64_t align)
{
	return align / ARENA_QUANTUM < QUANTA_MAX ? (uint32_t)(align / ARENA_QUANTUM) : QUANTA_MAX;
}

static uint32_t align_up(uint32_t x, uint32_t align)
{
	return (x + align - 1) & ~(align - 1);
}

static bool block_fits(const struct block *block, uint32_t size, uint32_t align)
{
	uint32_t front = align_up(block->offset, align) - block->offset;
	return front <= block->size && block->size - front >= size;
}

/* A free block that holds `size` quanta at `align`, or NONE. First the head of the lowest bin that must be large
 * enough, as blocks are mostly aligned; then one that is large enough wherever it starts; only then block by block
 * what lies between, so that a refusal means that there really is no place. */
static uint32_t block_find(const struct arena *arena, uint32_t size, uint32_t align)
{
	struct bin bin = bin_above(size);
	if (bin_find(arena, &bin)) {
		uint32_t head = arena->bins[bin.class][bin.sub];
		if (block_fits(&arena->blocks[head], size, align))
			return head;
	}
	struct bin sure = bin_above(size + align - 1);
	if (bin_find(arena, &sure))
		return arena->bins[sure.class][sure.sub];
	for (bin = bin_of(size); bin_find(arena, &bin); bin.sub++) {
		for (uint32_t i = arena->bins[bin.class][bin.sub]; i; i = arena->blocks[i].next)
			if (block_fits(&arena->blocks[i], size, align))
				return i;
		if (bin.sub == N_SUB - 1)
			bin = (struct bin){bin.class + 1, (unsigned)-1};
	}
	return NONE;
}

int arena_new(const struct heap *heap, uint64_t bytes, struct arena **out)
{
	assert(bytes > 0 && bytes % ARENA_QUANTUM == 0 && bytes / ARENA_QUANTUM <= QUANTA_MAX);
	struct arena *arena = heap_zalloc(heap, 1, sizeof(*arena));
	if (!arena)
		return -ENOMEM;
	arena->heap = heap;
	arena->size = (uint32_t)(bytes / ARENA_QUANTUM);
	if (starts_init(&arena->starts, heap, arena->size)) {
		heap_free(heap, arena);
		return -ENOMEM;
	}
	arena->at = heap_alloc(heap, (size_t)arena->size * sizeof(*arena->at));
	if (!arena->at || blocks_ensure(arena, 1)) {
		arena_free(arena);
		return -ENOMEM;
	}
	uint32_t all = block_take_entry(arena);
	arena->blocks[all] = (struct block){.size = arena->size};
	starts_add(&arena->starts, 0);
	arena->at[0] = all;
	bin_push(arena, all);
	*out = arena;
	return 0;
}

void arena_free(struct arena *arena)
{
	if (!arena)
		return;
	starts_deinit(&arena->starts);
	heap_free(arena->heap, arena->at);
	heap_free(arena->heap, arena->blocks);
	heap_free(arena->heap, arena);
}

int arena_alloc(struct arena *arena, uint64_t bytes, uint64_t align, void *tag, uint64_t *offset)
{
	assert(bytes > 0 && align >= ARENA_QUANTUM && (align & (align - 1)) == 0);
	uint64_t size = (bytes + ARENA_QUANTUM - 1) / ARENA_QUANTUM;
	if (size > arena->size)
		return 1;
	uint32_t align_q = align_of(align);
	uint32_t found = block_find(arena, (uint32_t)size, align_q);
	if (!found)
		return 1;
	if (blocks_ensure(arena, 2))
		return -ENOMEM;
	uint32_t start = align_up(arena->blocks[found].offset, align_q);
	block_carve(arena, found, start, (uint32_t)size, tag);
	*offset = (uint64_t)start * ARENA_QUANTUM;
	return 0;
}

static uint32_t block_holding(const struct arena *arena, uint32_t quantum)
{
	return arena->at[starts_floor(&arena->starts, quantum)];
}

int arena_reserve(struct arena *arena, uint64_t offset, uint64_t bytes, void *tag)
{
	assert(bytes > 0 && offset % ARENA_QUANTUM == 0 && bytes % ARENA_QUANTUM == 0);
	uint64_t start = offset / ARENA_QUANTUM, size = bytes / ARENA_QUANTUM;
	if (start >= arena->size || size > arena->size - start)
		return 1;
	uint32_t index = block_holding(arena, (uint32_t)start);
	const struct block *block = &arena->blocks[index];
	if (block->taken || start + size > (uint64_t)block->offset + block->size)
		return 1;
	if (blocks_ensure(arena, 2))
		return -ENOMEM;
	block_carve(arena, index, (uint32_t)start, (uint32_t)size, tag);
	return 0;
}

/* Frees one whole block and merges it with free neighbours. Returns the block it is part of then. */
static uint32_t block_release(struct arena *arena, uint32_t index)
{
	struct block *block = &arena->blocks[index];
	assert(block->taken);
	uint32_t after = block->after, before = block->before;
	if (after && !arena->blocks[after].taken) {
		bin_remove(arena, after);
		block->size += arena->blocks[after].size;
		block_drop(arena, after);
	}
	if (before && !arena->blocks[before].taken) {
		bin_remove(arena, before);
		arena->blocks[before].size += block->size;
		block_drop(arena, index);
		index = before;
	}
	bin_push(arena, index);
	return index;
}

int arena_prepare(struct arena *arena, uint32_t n)
{
	if (blocks_ensure(arena, n))
		return -ENOMEM;
	arena->spare += n;
	return 0;
}

void arena_unprepare(struct arena *arena, uint32_t n)
{
	assert(n <= arena->spare);
	arena->spare -= n;
}

void arena_release(struct arena *arena, uint64_t offset, uint64_t bytes)
{
	assert(bytes > 0 && offset % ARENA_QUANTUM == 0 && bytes % ARENA_QUANTUM == 0);
	uint32_t start = (uint32_t)(offset / ARENA_QUANTUM), end = start + (uint32_t)(bytes / ARENA_QUANTUM);
	uint32_t index = starts_has(&arena->starts, start) ? arena->at[start] : block_holding(arena, start);
	if (arena->blocks[index].offset < start)
		index = block_split(arena, index, start - arena->blocks[index].offset);
	for (;;) {
		if (arena->blocks[index].offset + arena->blocks[index].size > end)
			block_split(arena, index, end - arena->blocks[index].offset);
		index = block_release(arena, index);
		if (arena->blocks[index].offset + arena->blocks[index].size >= end)
			return;
		index = arena->blocks[index].after;
	}
}

void arena_retag(struct arena *arena, uint64_t offset, void *tag)
{
	uint32_t start = (uint32_t)(offset / ARENA_QUANTUM);
	assert(starts_has(&arena->starts, start) && arena->blocks[arena->at[start]].taken);
	arena->blocks[arena->at[start]].tag = tag;
}

bool arena_at(const struct arena *arena, uint64_t offset, struct arena_extent *extent)
{
	if (offset / ARENA_QUANTUM >= arena->size)
		return false;
	const struct block *block = &arena->blocks[block_holding(arena, (uint32_t)(offset / ARENA_QUANTUM))];
	*extent = (struct arena_extent){.offset = (uint64_t)block->offset * ARENA_QUANTUM,
					.bytes = (uint64_t)block->size * ARENA_QUANTUM,
					.taken = block->taken,
					.tag = block->tag};
	return true;
}

uint64_t arena_free_bytes(const struct arena *arena)
{
	return arena->free * ARENA_QUANTUM;
}

uint64_t arena_largest_fit(const struct arena *arena, uint64_t align)
{
	uint32_t best = 0, align_q = align_of(align);
	for (uint32_t classes = arena->classes; classes;) {
		unsigned class = log2_floor(classes);
		classes &= ~(UINT32_C(1) << class);
		for (uint32_t subs = arena->subs[class]; subs;) {
			unsigned sub = log2_floor(subs);
			subs &= ~(UINT32_C(1) << sub);
			for (uint32_t i = arena->bins[class][sub]; i; i = arena->blocks[i].next) {
				const struct block *block = &arena->blocks[i];
				uint32_t front = align_up(block->offset, align_q) - block->offset;
				if (front < block->size && block->size - front > best)
					best = block->size - front;
			}
			/* Every block of a lower bin is smaller than all of this one's. */
			struct bin of_best = bin_of(best ? best : 1);
			if (of_best.class > class || (of_best.class == class && of_best.sub >= sub))
				return (uint64_t)best * ARENA_QUANTUM;
		}
	}
	return (uint64_t)best * ARENA_QUANTUM;
}

uint64_t arena_largest_free(const struct arena *arena)
{
	return arena_largest_fit(arena, ARENA_QUANTUM);
}

static const char *check_bins(const struct arena *arena, uint32_t n_free)
{
	uint32_t seen = 0;
	for (unsigned octave = 0; octave < N_CLASSES; octave++) {
		if (!!arena->subs[octave] != (arena->classes >> octave & 1))
			return "a class bit differs from its bins";
		for (unsigned sub = 0; sub < N_SUB; sub++) {
			uint32_t head = arena->bins[octave][sub], before = NONE;
			if (!!head != (arena->subs[octave] >> sub & 1))
				return "a bin bit differs from its list";
			for (uint32_t i = head; i; before = i, i = arena->blocks[i].next) {
				struct bin bin = bin_of(arena->blocks[i].size);
				if (arena->blocks[i].taken || bin.class != octave || bin.sub != sub)
					return "a block is in a bin it does not belong to";
				if (arena->blocks[i].prev != before || ++seen > n_free)
					return "a bin's list is broken";
			}
		}
	}
	return seen == n_free ? NULL : "a free block is in no bin";
}

const char *arena_check(const struct arena *arena)
{
	uint64_t offset = 0, n_free_quanta = 0;
	uint32_t n_blocks = 0, n_free = 0, before = NONE;
	for (uint32_t i = arena->at[0]; i; before = i, i = arena->blocks[i].after) {
		const struct block *block = &arena->blocks[i];
		if (block->offset != offset || block->size == 0)
			return "blocks do not tile the arena";
		if (block->before != before)
			return "a neighbour link is broken";
		if (!starts_has(&arena->starts, block->offset) || arena->at[block->offset] != i)
			return "the index misses a block";
		if (starts_floor(&arena->starts, block->offset + block->size - 1) != block->offset)
			return "the index has a start inside a block";
		if (!block->taken) {
			if (before && !arena->blocks[before].taken)
				return "two free neighbours are not merged";
			n_free++;
			n_free_quanta += block->size;
		}
		offset += block->size;
		if (++n_blocks > arena->size)
			return "the neighbour list has a loop";
	}
	if (offset != arena->size)
		return "blocks do not reach the end";
	if (n_free_quanta != arena->free)
		return "the free count is wrong";
	if (n_blocks + arena->n_unused + 1 != arena->capacity)
		return "block entries are lost";
	return check_bins(arena, n_free);
}
