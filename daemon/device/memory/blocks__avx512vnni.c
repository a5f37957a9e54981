/* Copies of blocks in whole cache lines, the last one under a mask: a block of up to 64 bytes is one load and one
 * store, whatever its size. From some KiB on a string move is as fast as the caches are, as it need not fetch the
 * lines that it overwrites; every processor that has this row begins one within some ten cycles.
 *
 * What a loop needs is in variables: for all the compiler knows a store of bytes may change any struct. */
#include <immintrin.h>
#include <stdbool.h>

#include "daemon/device/implementations.h"
#include "daemon/device/memory/blocks.h"

enum { LINE = 64 };

static inline __m512i load(const uint8_t *from)
{
	return _mm512_loadu_si512(from);
}

static inline void store(uint8_t *to, __m512i bytes)
{
	_mm512_storeu_si512(to, bytes);
}

/* Up to a line. */
static void copy_short(uint8_t *to, const uint8_t *from, int64_t bytes, int64_t n, int64_t to_pitch,
		       int64_t from_pitch)
{
	const __mmask64 mask = UINT64_MAX >> (LINE - bytes);
	for (; n >= 4; n -= 4) {
		__m512i a = _mm512_maskz_loadu_epi8(mask, from);
		__m512i b = _mm512_maskz_loadu_epi8(mask, from + from_pitch);
		__m512i c = _mm512_maskz_loadu_epi8(mask, from + 2 * from_pitch);
		__m512i d = _mm512_maskz_loadu_epi8(mask, from + 3 * from_pitch);
		_mm512_mask_storeu_epi8(to, mask, a);
		_mm512_mask_storeu_epi8(to + to_pitch, mask, b);
		_mm512_mask_storeu_epi8(to + 2 * to_pitch, mask, c);
		_mm512_mask_storeu_epi8(to + 3 * to_pitch, mask, d);
		to += 4 * to_pitch;
		from += 4 * from_pitch;
	}
	for (; n > 0; n--, to += to_pitch, from += from_pitch)
		_mm512_mask_storeu_epi8(to, mask, _mm512_maskz_loadu_epi8(mask, from));
}

/* Blocks that touch on one side and stand `pitch` apart on the other: as many as span a line there are expanded
 * into their places and stored under a mask, or compressed from there. */
struct apart {
	int64_t bytes, pitch, step; /* blocks at a time */
	__mmask64 spread, dense;    /* their bytes, here and there */
};

static struct apart apart_of(int64_t bytes, int64_t pitch, int64_t n)
{
	struct apart apart = {bytes, pitch, LINE / pitch < n ? LINE / pitch : n, 0, 0};
	for (int64_t i = 0; i < apart.step; i++)
		apart.spread |= (UINT64_MAX >> (LINE - bytes)) << i * pitch;
	apart.dense = UINT64_MAX >> (LINE - apart.step * bytes);
	return apart;
}

/* The first n blocks of a step. */
static struct apart apart_some(const struct apart *apart, int64_t n)
{
	struct apart some = *apart;
	some.spread &= (UINT64_C(1) << n * apart->pitch) - 1;
	some.dense = UINT64_MAX >> (LINE - n * apart->bytes);
	return some;
}

static inline void expand(uint8_t *to, const uint8_t *from, const struct apart *apart)
{
	__m512i bytes = _mm512_maskz_loadu_epi8(apart->dense, from);
	_mm512_mask_storeu_epi8(to, apart->spread, _mm512_maskz_expand_epi8(apart->spread, bytes));
}

static inline void compress(uint8_t *to, const uint8_t *from, const struct apart *apart)
{
	__m512i bytes = _mm512_maskz_loadu_epi8(apart->spread, from);
	_mm512_mask_storeu_epi8(to, apart->dense, _mm512_maskz_compress_epi8(apart->spread, bytes));
}

/* All blocks, by expand() or compress(). */
static inline __attribute__((always_inline)) void move_apart(uint8_t *to, const uint8_t *from,
							     const struct blocks *b, const bool expands)
{
	void (*const move)(uint8_t *, const uint8_t *, const struct apart *) = expands ? expand : compress;
	const struct apart apart = apart_of(b->bytes, (expands ? b->to_pitch : b->from_pitch)[0], b->n[0]);
	const int64_t rest = b->n[0] % apart.step, there = apart.step * apart.pitch,
		      here = apart.step * apart.bytes;
	const struct apart last = apart_some(&apart, rest ? rest : 1);
	for (int64_t j = 0; j < b->n[1]; j++, to += b->to_pitch[1], from += b->from_pitch[1]) {
		uint8_t *t = to;
		const uint8_t *f = from;
		for (int64_t n = b->n[0] / apart.step; n > 0; n--) {
			move(t, f, &apart);
			t += expands ? there : here;
			f += expands ? here : there;
		}
		if (rest)
			move(t, f, &last);
	}
}

/* Of more than a line: the last one overlaps the one before it. */
static inline void copy_lines(uint8_t *to, const uint8_t *from, int64_t bytes)
{
	int64_t at = 0;
	for (; at + 4 * LINE <= bytes; at += 4 * LINE) {
		__m512i a = load(from + at), b = load(from + at + LINE);
		__m512i c = load(from + at + 2 * LINE), d = load(from + at + 3 * LINE);
		store(to + at, a);
		store(to + at + LINE, b);
		store(to + at + 2 * LINE, c);
		store(to + at + 3 * LINE, d);
	}
	for (; at + LINE <= bytes; at += LINE)
		store(to + at, load(from + at));
	if (at < bytes)
		store(to + bytes - LINE, load(from + bytes - LINE));
}

static inline void copy_string(uint8_t *to, const uint8_t *from, int64_t bytes)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

static void copy_row(uint8_t *to, const uint8_t *from, int64_t bytes, int64_t n, int64_t to_pitch,
		     int64_t from_pitch)
{
	enum { STRING_BYTES_MIN = 2048 };
	if (bytes <= LINE)
		copy_short(to, from, bytes, n, to_pitch, from_pitch);
	else if (bytes < STRING_BYTES_MIN)
		for (; n > 0; n--, to += to_pitch, from += from_pitch)
			copy_lines(to, from, bytes);
	else
		for (; n > 0; n--, to += to_pitch, from += from_pitch)
			copy_string(to, from, bytes);
}

/* Worth it where several blocks are in a line. */
static bool stands_apart(int64_t bytes, int64_t pitch, int64_t other_pitch)
{
	enum { BYTES_MAX = 8, PITCH_MAX = LINE / 4 };
	return bytes <= BYTES_MAX && other_pitch == bytes && pitch > bytes && pitch <= PITCH_MAX;
}

static void copy(uint8_t *to, const uint8_t *from, const struct blocks *blocks)
{
	/* Of few lines nearly each vector lies across two, of halves every second one: 1.1 to 1.8 times as fast.
	 */
	enum { HALVES_BYTES_MAX = 255 };
	const struct blocks b = *blocks;
	if (stands_apart(b.bytes, b.to_pitch[0], b.from_pitch[0])) {
		move_apart(to, from, &b, true);
		return;
	}
	if (stands_apart(b.bytes, b.from_pitch[0], b.to_pitch[0])) {
		move_apart(to, from, &b, false);
		return;
	}
	if (b.bytes > LINE && b.bytes <= HALVES_BYTES_MAX) {
		blocks__avx2.copy(to, from, &b);
		return;
	}
	for (int64_t j = 0; j < b.n[1]; j++, to += b.to_pitch[1], from += b.from_pitch[1])
		copy_row(to, from, b.bytes, b.n[0], b.to_pitch[0], b.from_pitch[0]);
}

/* Up to a line each. */
static void fill(uint8_t *to, const struct blocks *blocks, const uint8_t *pattern)
{
	const struct blocks b = *blocks;
	const __m512i bytes = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)pattern));
	if (b.bytes > LINE) {
		blocks_fill(to, blocks, pattern);
		return;
	}
	const __mmask64 mask = UINT64_MAX >> (LINE - b.bytes);
	for (int64_t j = 0; j < b.n[1]; j++, to += b.to_pitch[1]) {
		uint8_t *t = to;
		for (int64_t i = 0; i < b.n[0]; i++, t += b.to_pitch[0])
			_mm512_mask_storeu_epi8(t, mask, bytes);
	}
}

const struct blocks_paths blocks__avx512vnni = {copy, blocks_transpose, fill};
