/* The list is linked in the freed blocks themselves, the latest first.
 * Invariant: only blocks of BLOCKS_LARGE_BYTES and more are in the list; `bytes` is their sum. */
#include "daemon/server/process/blocks.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utlist.h>
#include <uv.h>

#ifdef __SANITIZE_ADDRESS__
#define KEPT_BYTES ((size_t)0) /* a use after free is to be found */
#else
#define KEPT_BYTES ((size_t)64 << 20)
#endif
/* As much as the request bytes of all users. A caller that frees faster than the thread frees its block itself. */
#define FREED_BYTES_MAX ((size_t)1 << 30)

enum {
	TRIED_MAX = 16,		 /* blocks that an allocation compares with its size */
	WASTED_PART = 4,	 /* of a block, that an allocation may leave unused: one part in so many */
	PIECE_BYTES = 256 << 10, /* given back at once */
	STACK_BYTES = 256 << 10, /* sanitizers want more than the least */
};

struct block {
	size_t bytes;
	struct block *next, *prev;
};

static struct {
	bool is_open; /* changes while there is no other thread */
	uv_thread_t thread;
	uv_mutex_t lock; /* of what follows */
	uv_cond_t work;	 /* more than KEPT_BYTES are freed, or the end */
	struct block *freed;
	size_t bytes;
	bool is_closing;
} blocks;

static void unlink_block(struct block *block)
{
	DL_DELETE(blocks.freed, block);
	blocks.bytes -= block->bytes;
}

static bool fits(const struct block *block, size_t bytes)
{
	return block->bytes >= bytes && block->bytes - bytes <= block->bytes / WASTED_PART;
}

/* NULL: none fits. */
static struct block *take(size_t bytes)
{
	unsigned n_tried = 0;
	struct block *block;

	uv_mutex_lock(&blocks.lock);
	block = blocks.freed;
	while (block && !fits(block, bytes))
		block = ++n_tried < TRIED_MAX ? block->next : NULL;
	if (block)
		unlink_block(block);
	uv_mutex_unlock(&blocks.lock);
	return block;
}

/* False where too much is freed already. */
static bool keep_freed(void *memory, size_t bytes)
{
	struct block *block = memory;
	bool is_kept;

	uv_mutex_lock(&blocks.lock);
	is_kept = blocks.bytes + bytes <= FREED_BYTES_MAX;
	if (is_kept) {
		block->bytes = bytes;
		DL_PREPEND(blocks.freed, block);
		blocks.bytes += bytes;
		if (blocks.bytes > KEPT_BYTES)
			uv_cond_signal(&blocks.work);
	}
	uv_mutex_unlock(&blocks.lock);
	return is_kept;
}

static void *alloc_block(void *ctx, size_t bytes)
{
	struct block *block = bytes >= BLOCKS_LARGE_BYTES && blocks.is_open ? take(bytes) : NULL;

	(void)ctx;
	return block ? block : malloc(bytes);
}

static void free_block(void *ctx, void *memory)
{
	size_t bytes = memory && blocks.is_open ? malloc_usable_size(memory) : 0;

	(void)ctx;
	if (bytes < BLOCKS_LARGE_BYTES || !keep_freed(memory, bytes))
		free(memory);
}

const struct heap blocks_heap = {alloc_block, free_block, NULL};

/* Its pages first, in pieces: a block as a whole is an munmap, for which an mmap of the loop would wait. */
static void give_back(struct block *block)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)block, end = at + block->bytes;

	end -= end % page;
	for (at += page - at % page; at < end; at += PIECE_BYTES)
		madvise((void *)at, end - at < PIECE_BYTES ? end - at : PIECE_BYTES, MADV_DONTNEED);
	free(block);
}

/* The oldest first. */
static void run_thread(void *arg)
{
	struct block *block;

	(void)arg;
	uv_mutex_lock(&blocks.lock);
	while (!blocks.is_closing) {
		if (blocks.bytes <= KEPT_BYTES) {
			uv_cond_wait(&blocks.work, &blocks.lock);
			continue;
		}
		block = blocks.freed->prev;
		unlink_block(block);
		uv_mutex_unlock(&blocks.lock);
		give_back(block);
		uv_mutex_lock(&blocks.lock);
	}
	uv_mutex_unlock(&blocks.lock);
}

int blocks_open(void)
{
	const uv_thread_options_t options = {.flags = UV_THREAD_HAS_STACK_SIZE, .stack_size = STACK_BYTES};
	int status = uv_mutex_init(&blocks.lock);

	if (status)
		return status;
	status = uv_cond_init(&blocks.work);
	if (!status) {
		blocks.is_closing = false;
		status = uv_thread_create_ex(&blocks.thread, &options, run_thread, NULL);
		if (status)
			uv_cond_destroy(&blocks.work);
	}
	if (status)
		uv_mutex_destroy(&blocks.lock);
	blocks.is_open = !status;
	return status;
}

void blocks_close(void)
{
	struct block *block, *next;

	if (!blocks.is_open)
		return;
	uv_mutex_lock(&blocks.lock);
	blocks.is_closing = true;
	uv_cond_signal(&blocks.work);
	uv_mutex_unlock(&blocks.lock);
	uv_thread_join(&blocks.thread);
	blocks.is_open = false;
	DL_FOREACH_SAFE(blocks.freed, block, next)
	free(block);
	blocks.freed = NULL;
	blocks.bytes = 0;
	uv_cond_destroy(&blocks.work);
	uv_mutex_destroy(&blocks.lock);
}
