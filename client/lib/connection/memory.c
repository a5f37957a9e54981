/* The C library's heap behind struct memory. Does nothing else. */
#include "client/lib/connection/memory.h"

#include <stdlib.h>

static void *libc_resize(void *ctx, void *old, size_t bytes)
{
	(void)ctx;
	if (bytes)
		return realloc(old, bytes);
	free(old);
	return NULL;
}

const struct memory memory_libc = {.resize = libc_resize};
