/* The pool behind record.h: chunks that are given back to the heap only at the end.
 * Invariant: a record is in the pool, in a chain that record_take handed out, or a tensor's owner. */
#include "daemon/service/record.h"

enum { CHUNK_RECORDS = 32 };

struct record_chunk {
	struct record_chunk *next;
	struct record records[CHUNK_RECORDS];
};

void record_pool_init(struct record_pool *pool, const struct heap *heap)
{
	*pool = (struct record_pool){.heap = heap};
}

void record_pool_deinit(struct record_pool *pool)
{
	while (pool->chunks) {
		struct record_chunk *chunk = pool->chunks;

		pool->chunks = chunk->next;
		heap_free(pool->heap, chunk);
	}
	pool->spare = NULL;
}

static bool pool_grow(struct record_pool *pool)
{
	struct record_chunk *chunk = heap_alloc(pool->heap, sizeof(*chunk));

	if (!chunk)
		return false;
	chunk->next = pool->chunks;
	pool->chunks = chunk;
	for (unsigned i = 0; i < CHUNK_RECORDS; i++) {
		chunk->records[i].next_spare = pool->spare;
		pool->spare = &chunk->records[i];
	}
	return true;
}

struct record *record_take(struct record_pool *pool, unsigned n)
{
	struct record *chain = NULL;

	while (n-- > 0) {
		struct record *record;

		if (!pool->spare && !pool_grow(pool)) {
			record_give(pool, chain);
			return NULL;
		}
		record = pool->spare;
		pool->spare = record->next_spare;
		memset(record, 0, sizeof(*record));
		record->next_spare = chain;
		chain = record;
	}
	return chain;
}

void record_give(struct record_pool *pool, struct record *chain)
{
	while (chain) {
		struct record *next = chain->next_spare;

		heap_free(pool->heap, chain->grants);
		chain->grants = NULL;
		chain->next_spare = pool->spare;
		pool->spare = chain;
		chain = next;
	}
}
