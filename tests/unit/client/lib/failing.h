/* Host memory that fails its i-th allocation, and counts what is not given back. */
#ifndef TESTS_CLIENT_FAILING_H
#define TESTS_CLIENT_FAILING_H

#include <stdlib.h>

#include "client/lib/connection/memory.h"

struct failing {
	unsigned calls, fail_at; /* counted from 1; 0: none */
	long live;
};

static inline void *failing_resize(void *ctx, void *old, size_t bytes)
{
	struct failing *failing = ctx;
	if (!bytes) {
		failing->live--;
		free(old);
		return NULL;
	}
	if (++failing->calls == failing->fail_at)
		return NULL;
	failing->live += !old;
	return realloc(old, bytes);
}

#endif
