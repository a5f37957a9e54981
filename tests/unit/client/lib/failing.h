/* Host memory that fails its i-th allocation, or all from it on, and counts what is not given back. */
#ifndef TESTS_CLIENT_FAILING_H
#define TESTS_CLIENT_FAILING_H

#include <stdbool.h>
#include <stdlib.h>

#include "client/lib/connection/memory.h"

struct failing {
	unsigned calls, fail_at; /* counted from 1; 0: none */
	long live;
	bool for_good;
};

static inline void *failing_resize(void *ctx, void *old, size_t bytes)
{
	struct failing *failing = ctx;
	if (!bytes) {
		failing->live--;
		free(old);
		return NULL;
	}
	failing->calls++;
	if (failing->calls == failing->fail_at ||
	    (failing->for_good && failing->fail_at && failing->calls > failing->fail_at))
		return NULL;
	failing->live += !old;
	return realloc(old, bytes);
}

#endif
