/* Where the library's host memory comes from: handed in when a connection is made, so that a test can fail every
 * single allocation. What goes to the user for free() comes from memory_libc's malloc. */
#ifndef CLIENT_LIB_MEMORY_H
#define CLIENT_LIB_MEMORY_H

#include <stddef.h>

struct memory {
	/* As realloc, but bytes 0 frees and gives NULL. `old` may be NULL. */
	void *(*resize)(void *ctx, void *old, size_t bytes);
	void *ctx;
};

/* malloc, realloc and free. */
extern const struct memory memory_libc;

static inline void *memory_alloc(const struct memory *memory, size_t bytes)
{
	return memory->resize(memory->ctx, NULL, bytes ? bytes : 1);
}

/* NULL also where n * bytes overflows; not zeroed. */
static inline void *memory_array(const struct memory *memory, size_t n, size_t bytes)
{
	size_t total;
	return __builtin_mul_overflow(n, bytes, &total) ? NULL : memory_alloc(memory, total);
}

static inline void memory_free(const struct memory *memory, void *old)
{
	if (old)
		memory->resize(memory->ctx, old, 0);
}

#endif
