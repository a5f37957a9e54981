/* A heap that can run dry: counts what is taken and given back, and fails the allocation with a chosen number. */
#ifndef TESTS_DEVICE_SCARCE_H
#define TESTS_DEVICE_SCARCE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/device/memory/heap.h"

struct scarce {
	struct heap heap;
	int64_t n_calls; /* since scarce_arm */
	int64_t fail_at; /* the call that fails, counted from 0; -1: none */
	int64_t n_live;
};

static inline void *scarce_alloc(void *ctx, size_t bytes)
{
	struct scarce *scarce = ctx;
	if (scarce->n_calls++ == scarce->fail_at)
		return NULL;
	void *memory = malloc(bytes);
	/* The device may not rely on zeroed memory. Not all of a large one: that would touch its pages. */
	if (memory)
		memset(memory, 0xa5, bytes < 65536 ? bytes : 65536);
	scarce->n_live += memory != NULL;
	return memory;
}

static inline void scarce_free(void *ctx, void *memory)
{
	struct scarce *scarce = ctx;
	scarce->n_live -= memory != NULL;
	free(memory);
}

static inline void scarce_init(struct scarce *scarce)
{
	*scarce = (struct scarce){.heap = {scarce_alloc, scarce_free, scarce}, .fail_at = -1};
}

/* From now on the allocation number `fail_at` fails, once. */
static inline void scarce_arm(struct scarce *scarce, int64_t fail_at)
{
	scarce->n_calls = 0;
	scarce->fail_at = fail_at;
}

/* True where the allocation that should fail was asked for. */
static inline bool scarce_fired(const struct scarce *scarce)
{
	return scarce->fail_at >= 0 && scarce->n_calls > scarce->fail_at;
}

#endif
