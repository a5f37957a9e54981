/* The ordinary heap. */
#include "daemon/device/memory/heap.h"

static void *libc_alloc(void *ctx, size_t bytes)
{
	(void)ctx;
	return malloc(bytes);
}

static void libc_free(void *ctx, void *memory)
{
	(void)ctx;
	free(memory);
}

const struct heap heap_libc = {libc_alloc, libc_free, NULL};
