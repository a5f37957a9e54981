/* The ordinary heap. */
#include "daemon/device/memory/heap.h"

int heap_exhausted(struct npumem_error *error)
{
	return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "the daemon is out of host memory");
}

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
