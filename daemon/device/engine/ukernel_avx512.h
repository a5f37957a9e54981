/* What the AVX-512 micro-kernels share. A mask and not a tail loop at every end: what lies behind belongs to
 * others.
 */
#ifndef DEVICE_UKERNEL_AVX512_H
#define DEVICE_UKERNEL_AVX512_H

#include <immintrin.h>

#include "daemon/device/engine/ukernel_plain.h"

enum { UKERNEL_AVX512_VECTORS = UKERNEL_COLUMNS / UKERNEL_VECTOR };

/* n bits, n <= 64; 64 for more. */
UKERNEL_INLINE uint64_t ukernel_low_bits(int64_t n)
{
	return n >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
}

/* ---- spread ---- */

/* As ukernel_copy_rows, of rows that one vector of WIDTH bytes holds. Stores under a mask take about ten cycles:
 * all rows but the last ones are stored whole, with zeros behind them that the next row then covers. */
#define UKERNEL_COPY_SHORT(name, vector, width, mask_type, LOAD, STORE, MASKED)                                   \
	UKERNEL_INLINE void name(const uint8_t *from, int64_t from_row, uint8_t *to, int64_t to_row,              \
				 int64_t n_rows, int64_t n)                                                       \
	{                                                                                                         \
		mask_type mask = (mask_type)ukernel_low_bits(n);                                                  \
		const uint8_t *last = to + (n_rows - 1) * to_row + n - width;                                     \
		for (int64_t y = 0; y < n_rows; y++, from += from_row, to += to_row) {                            \
			vector x = LOAD(mask, from);                                                              \
			if (to <= last)                                                                           \
				STORE((void *)to, x);                                                             \
			else                                                                                      \
				MASKED(to, mask, x);                                                              \
		}                                                                                                 \
	}
UKERNEL_COPY_SHORT(ukernel_copy16, __m128i, 16, __mmask16, _mm_maskz_loadu_epi8, _mm_storeu_si128,
		   _mm_mask_storeu_epi8)
UKERNEL_COPY_SHORT(ukernel_copy32, __m256i, 32, __mmask32, _mm256_maskz_loadu_epi8, _mm256_storeu_si256,
		   _mm256_mask_storeu_epi8)
UKERNEL_COPY_SHORT(ukernel_copy64, __m512i, 64, __mmask64, _mm512_maskz_loadu_epi8, _mm512_storeu_si512,
		   _mm512_mask_storeu_epi8)
#undef UKERNEL_COPY_SHORT

/* Rows of n bytes; between them lie zeros. */
UKERNEL_INLINE void ukernel_copy_rows(const uint8_t *from, int64_t from_row, uint8_t *to, int64_t to_row,
				      int64_t n_rows, int64_t n)
{
	if (n <= 16)
		ukernel_copy16(from, from_row, to, to_row, n_rows, n);
	else if (n <= 32)
		ukernel_copy32(from, from_row, to, to_row, n_rows, n);
	else if (n <= 64)
		ukernel_copy64(from, from_row, to, to_row, n_rows, n);
	else
		for (int64_t y = 0; y < n_rows; y++)
			memcpy(to + y * to_row, from + y * from_row, (size_t)n);
}

/* Every second element of 2 * n - 1. */
UKERNEL_INLINE void ukernel_halve_row8(const uint8_t *from, uint8_t *to, int64_t n)
{
	for (int64_t i = 0; i < n; i += 32) {
		__m512i x = _mm512_maskz_loadu_epi8(ukernel_low_bits(2 * (n - i) - 1), from + 2 * i);
		_mm256_mask_storeu_epi8(to + i, (__mmask32)ukernel_low_bits(n - i), _mm512_cvtepi16_epi8(x));
	}
}

UKERNEL_INLINE void ukernel_halve_row16(const uint16_t *from, uint16_t *to, int64_t n)
{
	for (int64_t i = 0; i < n; i += 16) {
		__m512i x = _mm512_maskz_loadu_epi16((__mmask32)ukernel_low_bits(2 * (n - i) - 1), from + 2 * i);
		_mm256_mask_storeu_epi16(to + i, (__mmask16)ukernel_low_bits(n - i), _mm512_cvtepi32_epi16(x));
	}
}

UKERNEL_INLINE void ukernel_avx512_spread(unsigned bytes, const void *from, int64_t from_row, int64_t step,
					  void *to, int64_t to_row, int64_t n_rows, int64_t n)
{
	const uint8_t *source = from;
	uint8_t *target = to;
	if (step > 2) {
		ukernel_plain_spread(bytes, from, from_row, step, to, to_row, n_rows, n);
		return;
	}
	if (step == 1) {
		ukernel_copy_rows(source, from_row * bytes, target, to_row * bytes, n_rows, n * bytes);
		return;
	}
	for (int64_t y = 0; y < n_rows; y++, source += from_row * bytes, target += to_row * bytes) {
		if (bytes == 1)
			ukernel_halve_row8(source, target, n);
		else
			ukernel_halve_row16((const uint16_t *)source, (uint16_t *)target, n);
	}
}

/* Up to 32 bytes of elements to every second element, under a mask: those between belong to others, or come
 * another time. */
UKERNEL_INLINE void ukernel_double(unsigned bytes, const uint8_t *from, int64_t n_bytes, uint8_t *to)
{
	__m256i x = _mm256_maskz_loadu_epi8((__mmask32)ukernel_low_bits(n_bytes), from);
	uint64_t every_second = bytes == 1 ? UINT64_C(0x5555555555555555) : UINT64_C(0x3333333333333333);
	_mm512_mask_storeu_epi8(to, every_second & ukernel_low_bits(2 * n_bytes),
				bytes == 1 ? _mm512_cvtepu8_epi16(x) : _mm512_cvtepu16_epi32(x));
}

UKERNEL_INLINE void ukernel_double_rows(const unsigned bytes, const uint8_t *from, int64_t n_bytes,
					const struct ukernel_rows *rows, uint8_t *to)
{
	int64_t x = rows->first * bytes, way = rows->way * bytes, left;
	for (; n_bytes > 0; x = 0, to += way) {
		for (left = rows->width * bytes - x; left > 0 && n_bytes > 0; left -= 32, x += 32) {
			int64_t some = left < 32 ? left : 32;
			some = some < n_bytes ? some : n_bytes;
			ukernel_double(bytes, from, some, to + 2 * x);
			from += some;
			n_bytes -= some;
		}
	}
}

UKERNEL_INLINE void ukernel_avx512_scatter(unsigned bytes, const void *from, int64_t n,
					   const struct ukernel_rows *rows, void *to)
{
	if (rows->step != 2)
		ukernel_plain_scatter(bytes, from, n, rows, to);
	else if (bytes == 1)
		ukernel_double_rows(1, from, n, rows, to);
	else
		ukernel_double_rows(2, from, 2 * n, rows, to);
}

/* Of a struct ukernel: what this file has of moving elements. */
#define UKERNEL_AVX512_MOVES .spread = ukernel_avx512_spread, .scatter = ukernel_avx512_scatter

/* ---- block ---- */

/* UKERNEL_ROWS x UKERNEL_AVX512_VECTORS sums, a row of vectors and one weight: 29 registers. DP is vpdpbusd or
 * vpdpwssd. */
#define UKERNEL_AVX512_SUM(DP, rows, vectors)                                                                     \
	static void sum_##rows##_##vectors(const uint32_t *offsets, int64_t n_steps, const uint8_t *data,         \
					   const uint8_t *weights, int32_t *sums)                                 \
	{                                                                                                         \
		__m512i acc[rows][vectors], x[vectors];                                                           \
		UKERNEL_UNROLL                                                                                    \
		for (unsigned r = 0; r < rows; r++) {                                                             \
			UKERNEL_UNROLL                                                                            \
			for (unsigned v = 0; v < vectors; v++)                                                    \
				acc[r][v] = _mm512_setzero_si512();                                               \
		}                                                                                                 \
		for (int64_t k = 0; k < n_steps; k++, weights += UKERNEL_STEP_BYTES * rows) {                     \
			const uint8_t *at = data + offsets[k];                                                    \
			UKERNEL_UNROLL                                                                            \
			for (unsigned v = 0; v < vectors; v++)                                                    \
				x[v] = _mm512_loadu_si512(at + 64 * v);                                           \
			UKERNEL_UNROLL                                                                            \
			for (unsigned r = 0; r < rows; r++) {                                                     \
				int32_t step;                                                                     \
				memcpy(&step, weights + UKERNEL_STEP_BYTES * r, sizeof(step));                    \
				__m512i w = _mm512_set1_epi32(step);                                              \
				UKERNEL_UNROLL                                                                    \
				for (unsigned v = 0; v < vectors; v++)                                            \
					acc[r][v] = DP(acc[r][v], x[v], w);                                       \
			}                                                                                         \
		}                                                                                                 \
		UKERNEL_UNROLL                                                                                    \
		for (unsigned r = 0; r < rows; r++) {                                                             \
			UKERNEL_UNROLL                                                                            \
			for (unsigned v = 0; v < vectors; v++)                                                    \
				_mm512_store_si512(sums + r * UKERNEL_COLUMNS + 16 * v, acc[r][v]);               \
		}                                                                                                 \
	}

#define UKERNEL_AVX512_SUMS(DP, rows)                                                                             \
	UKERNEL_AVX512_SUM(DP, rows, 1)                                                                           \
	UKERNEL_AVX512_SUM(DP, rows, 2)                                                                           \
	UKERNEL_AVX512_SUM(DP, rows, 3)                                                                           \
	UKERNEL_AVX512_SUM(DP, rows, 4)

/* Defines block(). */
#define UKERNEL_AVX512_BLOCK(DP)                                                                                  \
	UKERNEL_AVX512_SUMS(DP, 1)                                                                                \
	UKERNEL_AVX512_SUMS(DP, 2)                                                                                \
	UKERNEL_AVX512_SUMS(DP, 3)                                                                                \
	UKERNEL_AVX512_SUMS(DP, 4)                                                                                \
	UKERNEL_AVX512_SUMS(DP, 5)                                                                                \
	UKERNEL_AVX512_SUMS(DP, 6)                                                                                \
	static void block(const uint32_t *offsets, int64_t n_steps, const uint8_t *data, const uint8_t *weights,  \
			  unsigned rows, unsigned n_columns, int32_t *sums)                                       \
	{                                                                                                         \
		typedef void sum_function(const uint32_t *, int64_t, const uint8_t *, const uint8_t *,            \
					  int32_t *);                                                             \
		static sum_function *const all[UKERNEL_ROWS][UKERNEL_AVX512_VECTORS] = {                          \
			{sum_1_1, sum_1_2, sum_1_3, sum_1_4}, {sum_2_1, sum_2_2, sum_2_3, sum_2_4},               \
			{sum_3_1, sum_3_2, sum_3_3, sum_3_4}, {sum_4_1, sum_4_2, sum_4_3, sum_4_4},               \
			{sum_5_1, sum_5_2, sum_5_3, sum_5_4}, {sum_6_1, sum_6_2, sum_6_3, sum_6_4},               \
		};                                                                                                \
		all[rows - 1][(n_columns + UKERNEL_VECTOR - 1) / UKERNEL_VECTOR - 1](offsets, n_steps, data,      \
										     weights, sums);              \
	}

/* ---- store ---- */

/* Half a unit is added and what is below the point falls off; of a tie, which leaves zeros there, half to even
 * then clears the last bit, and half away from zero has taken one from what is negative before. */
struct ukernel_round32 {
	__m512i half, away, below, even, shift; /* a count for each element: one count for all is slower */
};

UKERNEL_INLINE struct ukernel_round32 ukernel_round32_of(const struct requantize *r)
{
	int32_t half = r->shift > 0 ? 1 << (r->shift - 1) : 0;
	return (struct ukernel_round32){
		.half = _mm512_set1_epi32(half),
		.away = _mm512_set1_epi32(r->rounding == NPUMEM_NEAREST && r->shift > 0 ? -1 : 0),
		.below = _mm512_set1_epi32((int32_t)((1u << r->shift) - 1)),
		.even = _mm512_set1_epi32(r->rounding == NPUMEM_CONVERGENT && r->shift > 0 ? -2 : -1),
		.shift = _mm512_set1_epi32((int32_t)r->shift),
	};
}

UKERNEL_INLINE __m512i ukernel_round32(__m512i x, const struct ukernel_round32 *r)
{
	__m512i away = _mm512_and_si512(_mm512_srai_epi32(x, 31), r->away);
	__m512i t = _mm512_add_epi32(_mm512_add_epi32(x, r->half), away);
	__m512i y = _mm512_srav_epi32(t, r->shift);
	return _mm512_mask_and_epi32(y, _mm512_testn_epi32_mask(t, r->below), y, r->even);
}

/* Which of 64 values leave a container of the lowest value -`top`, and the highest top - 1. */
UKERNEL_INLINE uint64_t ukernel_beyond(const __m512i y[4], int32_t top)
{
	__m512i low = _mm512_set1_epi32(top), most = _mm512_set1_epi32(2 * top - 1);
	uint64_t beyond = 0;
	UKERNEL_UNROLL
	for (unsigned v = 0; v < 4; v++)
		beyond |= (uint64_t)_mm512_cmpgt_epu32_mask(_mm512_add_epi32(y[v], low), most) << (16 * v);
	return beyond;
}

/* The real ones of 64 bytes, side by side. */
UKERNEL_INLINE void ukernel_put8(__m512i y, const struct ukernel_strip *strip, uint8_t *to)
{
	if (strip->n_real == 64)
		_mm512_storeu_si512(to, y);
	else
		_mm512_mask_storeu_epi8(to, ukernel_low_bits(strip->n_real),
					_mm512_maskz_compress_epi8(strip->real, y));
}

/* The real ones of 32 elements of 16 bits, from column `first` on; returns what comes behind them. */
UKERNEL_INLINE uint8_t *ukernel_put16(__m512i y, const struct ukernel_strip *strip, unsigned first, uint8_t *to)
{
	if (strip->n_real == UKERNEL_COLUMNS) {
		_mm512_storeu_si512(to, y);
		return to + 64;
	}
	__mmask32 real = (__mmask32)(strip->real >> first);
	int n = __builtin_popcount(real);
	_mm512_mask_storeu_epi16(to, (__mmask32)ukernel_low_bits(n), _mm512_maskz_compress_epi16(real, y));
	return to + 2 * n;
}

/* 32 values of 32 bits to 16, saturated, in their order. */
UKERNEL_INLINE __m512i ukernel_narrow16(__m512i a, __m512i b)
{
	const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
	return _mm512_permutexvar_epi64(order, _mm512_packs_epi32(a, b));
}

#endif
