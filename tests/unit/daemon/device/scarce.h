/* A heap that can run dry: counts what is taken and given back, and fails the allocation with a chosen number, and
 * where that is asked for all that come after it. */
#ifndef TESTS_DEVICE_SCARCE_H
#define TESTS_DEVICE_SCARCE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/device/memory/heap.h"

struct scarce {
	struct heap heap;
	int64_t n_calls;			      /* since scarce_arm */
	int64_t fail_at;			      /* the call that fails, counted from 0; -1: none */
	bool goes_on;				      /* so do all after it */
	void (*note)(const void *caller, bool fails); /* told of each; NULL: nobody is */
	int64_t n_live;
	uint64_t live_bytes, most_bytes; /* most: since scarce_measure */
};

enum { SCARCE_HEADER_BYTES = 16 }; /* in front of each: its size */

static inline void *scarce_alloc(void *ctx, size_t bytes)
{
	struct scarce *scarce = ctx;
	int64_t call = scarce->n_calls++;
	bool fails =
		call == scarce->fail_at || (scarce->goes_on && scarce->fail_at >= 0 && call > scarce->fail_at);
	if (scarce->note)
		scarce->note(__builtin_return_address(0), fails);
	if (fails)
		return NULL;
	uint8_t *memory = malloc(SCARCE_HEADER_BYTES + bytes);
	if (!memory)
		return NULL;
	memcpy(memory, &bytes, sizeof(bytes));
	memory += SCARCE_HEADER_BYTES;
	/* The device may not rely on zeroed memory. Not all of a large one: that would touch its pages. */
	memset(memory, 0xa5, bytes < 65536 ? bytes : 65536);
	scarce->n_live++;
	scarce->live_bytes += bytes;
	if (scarce->live_bytes > scarce->most_bytes)
		scarce->most_bytes = scarce->live_bytes;
	return memory;
}

static inline void scarce_free(void *ctx, void *memory)
{
	struct scarce *scarce = ctx;
	size_t bytes;
	if (!memory)
		return;
	memcpy(&bytes, (uint8_t *)memory - SCARCE_HEADER_BYTES, sizeof(bytes));
	scarce->n_live--;
	scarce->live_bytes -= bytes;
	free((uint8_t *)memory - SCARCE_HEADER_BYTES);
}

/* From now on the most that is taken at once is measured. Returns what is taken now. */
static inline uint64_t scarce_measure(struct scarce *scarce)
{
	scarce->most_bytes = scarce->live_bytes;
	return scarce->live_bytes;
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
