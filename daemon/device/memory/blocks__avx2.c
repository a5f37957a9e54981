/* Copies of blocks of 32 bytes and more in vectors, the last of which overlaps, and of blocks of a few bytes that
 * stand apart at `from` and touch at `to`, which are shuffled together 16 bytes at a time. The other way round
 * there is no path: what lies between the blocks is not ours to write, and there is no store under a mask of
 * bytes. */
#include <immintrin.h>
#include <stdbool.h>

#include "daemon/device/implementations.h"
#include "daemon/device/memory/blocks.h"

enum { VECTOR = 32, PIECE = 16 };

static inline __m256i load(const uint8_t *from)
{
	return _mm256_loadu_si256((const __m256i *)from);
}

static inline void store(uint8_t *to, __m256i bytes)
{
	_mm256_storeu_si256((__m256i *)to, bytes);
}

/* At least a vector each. */
static void copy_row(uint8_t *to, const uint8_t *from, int64_t bytes, int64_t n, int64_t to_pitch,
		     int64_t from_pitch)
{
	const int64_t last = bytes - VECTOR;
	for (; n > 0; n--, to += to_pitch, from += from_pitch) {
		for (int64_t at = 0; at < last; at += VECTOR)
			store(to + at, load(from + at));
		store(to + last, load(from + last));
	}
}

/* n blocks of up to 8 bytes. Each store but the last one's has some bytes too many, which the next one has right.
 */
static void compress(uint8_t *to, const uint8_t *from, int64_t bytes, int64_t pitch, int64_t n)
{
	const int64_t step = (PIECE - bytes) / pitch + 1;
	uint8_t order[PIECE];
	for (int64_t i = 0; i < PIECE; i++)
		order[i] = (uint8_t)(i < step * bytes ? i / bytes * pitch + i % bytes : 0x80);
	const __m128i shuffle = _mm_loadu_si128((const __m128i *)order);
	for (; n * bytes >= PIECE; n -= step, to += step * bytes, from += step * pitch)
		_mm_storeu_si128((__m128i *)to, _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)from), shuffle));
	const struct blocks rest = {bytes, {n, 1}, {bytes, 0}, {pitch, 0}};
	blocks_copy(to, from, &rest);
}

/* Worth it where several blocks are in a piece. */
static bool is_compressed(const struct blocks *b)
{
	return b->to_pitch[0] == b->bytes && b->from_pitch[0] > b->bytes && b->bytes + b->from_pitch[0] <= PIECE;
}

static void copy(uint8_t *to, const uint8_t *from, const struct blocks *blocks)
{
	enum { LONG_BYTES_MIN = 2048 }; /* a call is worth it */
	const struct blocks b = *blocks;
	bool is_short = b.bytes < VECTOR && !is_compressed(&b);
	if (is_short || b.bytes >= LONG_BYTES_MIN) {
		blocks_copy(to, from, &b);
		return;
	}
	for (int64_t j = 0; j < b.n[1]; j++, to += b.to_pitch[1], from += b.from_pitch[1])
		if (b.bytes >= VECTOR)
			copy_row(to, from, b.bytes, b.n[0], b.to_pitch[0], b.from_pitch[0]);
		else
			compress(to, from, b.bytes, b.from_pitch[0], b.n[0]);
}

const struct blocks_paths blocks__avx2 = {copy, blocks_transpose, blocks_fill};
