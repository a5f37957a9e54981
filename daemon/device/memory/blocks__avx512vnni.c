/* Copies of blocks in whole cache lines, the last one under a mask: a block of up to 64 bytes is one load and one
 * store, whatever its size. From some KiB on a string move is as fast as the caches are, as it need not fetch the
 * lines that it overwrites; every processor that has this row begins one within some ten cycles.
 *
 * What a loop needs is in variables: for all the compiler knows a store of bytes may change any struct. */
#include <immintrin.h>

#include "daemon/device/memory/blocks__avx512vnni.h"

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

/* Blocks of up to 8 bytes that touch on one side: as many as span a line on the other one are expanded into their
 * places, and stored there under a mask; compressed from there the other way. */
static inline int64_t span_blocks(int64_t pitch)
{
	return LINE / pitch;
}

static inline __mmask64 span_mask(int64_t bytes, int64_t pitch, int64_t n)
{
	__mmask64 mask = 0;
	for (int64_t i = 0; i < n; i++)
		mask |= (UINT64_MAX >> (LINE - bytes)) << i * pitch;
	return mask;
}

static void copy_apart(uint8_t *to, const uint8_t *from, int64_t bytes, int64_t n, int64_t pitch)
{
	const int64_t step = span_blocks(pitch);
	const __mmask64 spread = span_mask(bytes, pitch, step), dense = UINT64_MAX >> (LINE - step * bytes);
	for (; n >= step; n -= step, to += step * pitch, from += step * bytes)
		_mm512_mask_storeu_epi8(to, spread,
					_mm512_maskz_expand_epi8(spread, _mm512_maskz_loadu_epi8(dense, from)));
	if (n > 0)
		copy_short(to, from, bytes, n, pitch, bytes);
}

static void copy_together(uint8_t *to, const uint8_t *from, int64_t bytes, int64_t n, int64_t pitch)
{
	const int64_t step = span_blocks(pitch);
	const __mmask64 spread = span_mask(bytes, pitch, step), dense = UINT64_MAX >> (LINE - step * bytes);
	for (; n >= step; n -= step, to += step * bytes, from += step * pitch)
		_mm512_mask_storeu_epi8(to, dense,
					_mm512_maskz_compress_epi8(spread, _mm512_maskz_loadu_epi8(spread, from)));
	if (n > 0)
		copy_short(to, from, bytes, n, bytes, pitch);
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
	enum { APART_BYTES_MAX = 8, APART_PITCH_MAX = LINE / 4, STRING_BYTES_MIN = 2048 };
	if (bytes <= APART_BYTES_MAX && from_pitch == bytes && to_pitch > bytes && to_pitch <= APART_PITCH_MAX)
		copy_apart(to, from, bytes, n, to_pitch);
	else if (bytes <= APART_BYTES_MAX && to_pitch == bytes && from_pitch > bytes &&
		 from_pitch <= APART_PITCH_MAX)
		copy_together(to, from, bytes, n, from_pitch);
	else if (bytes <= LINE)
		copy_short(to, from, bytes, n, to_pitch, from_pitch);
	else if (bytes < STRING_BYTES_MIN)
		for (; n > 0; n--, to += to_pitch, from += from_pitch)
			copy_lines(to, from, bytes);
	else
		for (; n > 0; n--, to += to_pitch, from += from_pitch)
			copy_string(to, from, bytes);
}

void blocks_copy__avx512vnni(uint8_t *to, const uint8_t *from, const struct blocks *blocks)
{
	const struct blocks b = *blocks;
	for (int64_t j = 0; j < b.n[1]; j++, to += b.to_pitch[1], from += b.from_pitch[1])
		copy_row(to, from, b.bytes, b.n[0], b.to_pitch[0], b.from_pitch[0]);
}
