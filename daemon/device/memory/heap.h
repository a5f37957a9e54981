/* Where host memory comes from: handed in, so that a test can fail every single allocation. */
#ifndef DEVICE_HEAP_H
#define DEVICE_HEAP_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <npumem/types.h>

struct heap {
	void *(*alloc)(void *ctx, size_t bytes); /* NULL when there is none; aligned as malloc aligns */
	void (*free)(void *ctx, void *memory);	 /* takes NULL */
	void *ctx;
};

/* The refusal where there was none. */
int heap_exhausted(struct npumem_error *error);

/* malloc and free. */
extern const struct heap heap_libc;

static inline void *heap_alloc(const struct heap *heap, size_t bytes)
{
	return heap->alloc(heap->ctx, bytes ? bytes : 1);
}

/* Zeroed; NULL also where n * bytes overflows. */
static inline void *heap_zalloc(const struct heap *heap, size_t n, size_t bytes)
{
	size_t total;
	if (__builtin_mul_overflow(n, bytes, &total))
		return NULL;
	void *memory = heap_alloc(heap, total);
	if (memory)
		memset(memory, 0, total);
	return memory;
}

static inline void heap_free(const struct heap *heap, void *memory)
{
	heap->free(heap->ctx, memory);
}

#endif
