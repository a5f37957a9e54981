/* Copies of blocks by their size. A block of up to 128 bytes is moved as two pieces of constant size that overlap,
 * which compilers make vectors of, without a call or a loop for each; the bytes of both pieces are the same. */
#include "daemon/device/memory/blocks.h"

#include <string.h>

#include "daemon/device/implementations.h"

static inline __attribute__((always_inline)) void copy_piece(uint8_t *to, const uint8_t *from, size_t piece)
{
	memcpy(to, from, piece);
}

/* piece <= bytes <= 2 * piece; `piece` is a constant. */
static inline __attribute__((always_inline)) void copy_two(uint8_t *to, const uint8_t *from, int64_t bytes,
							   size_t piece)
{
	uint8_t first[64], last[64];
	copy_piece(first, from, piece);
	copy_piece(last, from + bytes - (int64_t)piece, piece);
	copy_piece(to, first, piece);
	copy_piece(to + bytes - (int64_t)piece, last, piece);
}

/* All blocks; `piece` is a constant, and so is `bytes` where a block is one piece. */
static inline __attribute__((always_inline)) void
copy_all(uint8_t *to, const uint8_t *from, const struct blocks *blocks, int64_t bytes, size_t piece)
{
	for (int64_t j = 0; j < blocks->n[1]; j++) {
		uint8_t *t = to + j * blocks->to_pitch[1];
		const uint8_t *f = from + j * blocks->from_pitch[1];
		for (int64_t i = 0; i < blocks->n[0]; i++) {
			if (bytes == (int64_t)piece)
				copy_piece(t, f, piece);
			else
				copy_two(t, f, bytes, piece);
			t += blocks->to_pitch[0];
			f += blocks->from_pitch[0];
		}
	}
}

static void copy_long(uint8_t *to, const uint8_t *from, const struct blocks *blocks)
{
	for (int64_t j = 0; j < blocks->n[1]; j++)
		for (int64_t i = 0; i < blocks->n[0]; i++)
			memcpy(to + i * blocks->to_pitch[0] + j * blocks->to_pitch[1],
			       from + i * blocks->from_pitch[0] + j * blocks->from_pitch[1],
			       (size_t)blocks->bytes);
}

void blocks_copy(uint8_t *to, const uint8_t *from, const struct blocks *blocks)
{
	int64_t bytes = blocks->bytes;
	if (bytes == 1)
		copy_all(to, from, blocks, 1, 1);
	else if (bytes == 2)
		copy_all(to, from, blocks, 2, 2);
	else if (bytes == 4)
		copy_all(to, from, blocks, 4, 4);
	else if (bytes == 8)
		copy_all(to, from, blocks, 8, 8);
	else if (bytes < 4)
		copy_all(to, from, blocks, bytes, 2);
	else if (bytes < 8)
		copy_all(to, from, blocks, bytes, 4);
	else if (bytes <= 16)
		copy_all(to, from, blocks, bytes, 8);
	else if (bytes <= 32)
		copy_all(to, from, blocks, bytes, 16);
	else if (bytes <= 64)
		copy_all(to, from, blocks, bytes, 32);
	else if (bytes <= 128)
		copy_all(to, from, blocks, bytes, 64);
	else
		copy_long(to, from, blocks);
}

/* At most 16 bytes, in pieces as above. */
static inline __attribute__((always_inline)) void fill_short(uint8_t *to, int64_t bytes, const uint8_t *pattern)
{
	size_t piece = bytes >= 8 ? 8 : bytes >= 4 ? 4 : bytes >= 2 ? 2 : 1;
	memcpy(to, pattern, piece);
	memcpy(to + bytes - (int64_t)piece, pattern, piece);
}

static void fill_long(uint8_t *to, int64_t bytes, const uint8_t *pattern)
{
	for (int64_t i = 0; i < bytes - 16; i += 16)
		memcpy(to + i, pattern, 16);
	memcpy(to + bytes - 16, pattern, 16);
}

static void fill_row(uint8_t *to, int64_t bytes, int64_t n, int64_t pitch, const uint8_t *pattern)
{
	enum { CALL_BYTES = 256 };
	if (bytes >= CALL_BYTES && !memcmp(pattern, pattern + 1, 15))
		for (; n > 0; n--, to += pitch)
			memset(to, pattern[0], (size_t)bytes);
	else if (bytes >= 16)
		for (; n > 0; n--, to += pitch)
			fill_long(to, bytes, pattern);
	else if (bytes == 1)
		for (; n > 0; n--, to += pitch)
			*to = *pattern;
	else
		for (; n > 0; n--, to += pitch)
			fill_short(to, bytes, pattern);
}

void blocks_fill(uint8_t *to, const struct blocks *blocks, const uint8_t *pattern)
{
	for (int64_t j = 0; j < blocks->n[1]; j++)
		fill_row(to + j * blocks->to_pitch[1], blocks->bytes, blocks->n[0], blocks->to_pitch[0], pattern);
}

const struct blocks_paths blocks__scalar = {blocks_copy, blocks_transpose, blocks_fill};

const struct blocks_paths *blocks_paths(enum isa isa)
{
	return implementations[isa].blocks;
}
