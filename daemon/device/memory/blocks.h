/* Moving blocks of bytes that stand apart, in two nested loops: what every DMA and gather comes down to. */
#ifndef DEVICE_BLOCKS_H
#define DEVICE_BLOCKS_H

#include <stdint.h>

#include "daemon/device/isa.h"

/* Block (i, j) is `bytes` long, i * to_pitch[0] + j * to_pitch[1] behind the first one on one side and
 * i * from_pitch[0] + j * from_pitch[1] on the other, for i < n[0] and j < n[1]. The sides share no byte. */
struct blocks {
	int64_t bytes;
	int64_t n[2], to_pitch[2], from_pitch[2];
};

typedef void blocks_move(uint8_t *to, const uint8_t *from, const struct blocks *blocks);

enum { BLOCKS_TRANSPOSE_BYTES_MAX = 8 };

/* How blocks are moved with the instructions of an isa. */
struct blocks_paths {
	blocks_move *copy; /* any blocks, those of one j after each other */
	/* Of a power of two up to BLOCKS_TRANSPOSE_BYTES_MAX that touch along i at `to` (to_pitch[0] == bytes) and
	 * along j at `from` (from_pitch[1] == bytes): whole vectors on both sides. */
	blocks_move *transpose;
	/* Sets all blocks to repetitions of the 16 bytes at `pattern`, itself repetitions of an element, of which
	 * each block has a whole number. */
	void (*fill)(uint8_t *to, const struct blocks *blocks, const uint8_t *pattern);
};

/* `isa`: not ISA_ANY, nor beyond what there is. */
const struct blocks_paths *blocks_paths(enum isa isa);

/* The paths that every processor has. */
void blocks_copy(uint8_t *to, const uint8_t *from, const struct blocks *blocks);
void blocks_transpose(uint8_t *to, const uint8_t *from, const struct blocks *blocks);
void blocks_fill(uint8_t *to, const struct blocks *blocks, const uint8_t *pattern);

#endif
