/* A table that grows by chunks of zeroed memory and never moves one: growing costs the same however large it is,
 * but for the list of chunks, which is copied when it doubles. */
#ifndef DEVICE_CHUNKS_H
#define DEVICE_CHUNKS_H

#include "daemon/device/memory/heap.h"

/* All zero: no chunk. */
struct chunks {
	void **at;
	size_t n, room;
};

/* Adds chunk number n. False without memory; then nothing changed. */
bool chunks_add(struct chunks *chunks, const struct heap *heap, size_t bytes);
void chunks_deinit(struct chunks *chunks, const struct heap *heap);

#endif
