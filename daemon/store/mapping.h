/* A file of which every byte from `off` on has its room on the disk and is mapped; and how bytes get there, so
 * that whoever dies at any moment leaves a beginning of the stores that it made, in their order. */
#ifndef STORE_MAPPING_H
#define STORE_MAPPING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "daemon/store/hooks.h"

struct mapping {
	const struct store_hooks *hooks;
	int fd; /* not the mapping's */
	uint64_t off;
	uint64_t bytes;
	uint8_t *at; /* NULL: not mapped */
};

/* Takes room for [off, off + bytes), which is a multiple of 4,096, and maps it. `sparse`: only the size, as room
 * cannot be denied later. 0; -errno, and nothing is mapped. */
int mapping_open(struct mapping *mapping, const struct store_hooks *hooks, int fd, uint64_t off, uint64_t bytes,
		 bool sparse);
/* The same with more bytes; `at` may move. 0; -errno, and it is as it was. */
int mapping_grow(struct mapping *mapping, uint64_t bytes);
void mapping_close(struct mapping *mapping);

/* Keeps the compiler from moving stores across. The processor makes them in the order of the program as far as
 * anybody can see who looks after the process has ended. */
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
