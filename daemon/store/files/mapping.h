/* A mapped file; every byte from `off` on has room on the disk. The store functions keep the order of stores, so
 * that a process that dies at any moment leaves a beginning of them. */
#ifndef STORE_MAPPING_H
#define STORE_MAPPING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "daemon/store/hooks.h"

struct mapping {
	const struct store_hooks *hooks;
	int fd; /* not owned; -1: no file */
	uint64_t off;
	uint64_t bytes, room; /* `room`: of addresses; the file has `bytes` */
	uint8_t *at;	      /* NULL: not mapped */
};

/* Takes room for [off, off + bytes), which is a multiple of 4,096, and maps it. `sparse`: sets only the size, for
 * files whose room cannot be denied later. 0; -errno, and nothing is mapped. */
int mapping_open(struct mapping *mapping, const struct store_hooks *hooks, int fd, uint64_t off, uint64_t bytes,
		 bool sparse);
/* Takes only addresses for so many bytes, so that it grows up to there without moving. A move of a table may take
 * milliseconds: the system call waits for page faults of other threads. Without enough addresses the mapping stays
 * as it is. */
void mapping_reserve(struct mapping *mapping, uint64_t bytes);
/* Makes it longer; `at` may move if that is more than was reserved. 0; -errno, and nothing changed. */
int mapping_grow(struct mapping *mapping, uint64_t bytes);
/* The process's own memory instead of a file; grows in the same way. */
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

/* The bytes are stored in parts, in any order. */
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
