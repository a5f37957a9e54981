/* A file of which every byte from `off` on has its room on the disk and is mapped; and how bytes get there, so
 * that a process that dies at any moment leaves a beginning of its stores, in their order. */
#ifndef STORE_MAPPING_H
#define STORE_MAPPING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "daemon/store/hooks.h"

struct mapping {
	const struct store_hooks *hooks;
	int fd; /* not the mapping's; -1: of none */
	uint64_t off;
	uint64_t bytes, room; /* addresses, of which the file has `bytes` */
	uint8_t *at;	      /* NULL: not mapped */
};

/* Takes room for [off, off + bytes), which is a multiple of 4,096, and maps it. `sparse`: only the size, as room
 * cannot be denied later. 0; -errno, and nothing is mapped. */
int mapping_open(struct mapping *mapping, const struct store_hooks *hooks, int fd, uint64_t off, uint64_t bytes,
		 bool sparse);
/* Takes addresses, and nothing else, for so many bytes. Up to there it grows where it is. Moving a table may take
 * milliseconds: the call waits for page faults of other threads. Where there are not so many addresses the mapping
 * stays as it is. */
void mapping_reserve(struct mapping *mapping, uint64_t bytes);
/* The same with more bytes; `at` may move beyond what is reserved. 0; -errno, and it is as it was. */
int mapping_grow(struct mapping *mapping, uint64_t bytes);
/* The process's own memory instead of a file; grows alike. */
int mapping_own(struct mapping *mapping, const struct store_hooks *hooks, uint64_t bytes);
void mapping_close(struct mapping *mapping);

/* Keeps the compiler from moving stores across. After the end of the process, its stores appear in the order of
 * the program. */
static inline void mapping_fence(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void mapping_store(const struct store_hooks *hooks, uint64_t *to, uint64_t word)
{
	mapping_fence();
	*(volatile uint64_t *)to = word;
	mapping_fence();
	if (__builtin_expect(hooks && hooks->stored, 0))
		hooks->stored(hooks->ctx);
}

/* In parts, in an order of its own. */
static inline void mapping_copy(const struct store_hooks *hooks, void *to, const void *from, size_t bytes)
{
	if (__builtin_expect(!hooks || !hooks->stored, 1)) {
		memcpy(to, from, bytes);
		return;
	}
	for (size_t i = 0, n; i < bytes; i += n) {
		n = bytes - i < 8 ? bytes - i : 8;
		memcpy((char *)to + i, (const char *)from + i, n);
		hooks->stored(hooks->ctx);
	}
}

#endif
