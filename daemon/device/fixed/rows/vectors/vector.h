/* What is written over vectors is written over these: vectors of VECTOR_N elements of 32 bits that come from and
 * go to containers of 8 and 16 bits, of the instruction set that a file is compiled for. What C says for vectors
 * is here, what an instruction set has to say in vector.def and, where it is more than an expression,
 * in vector__ISA.h.
 *
 * A tail is a vector of n elements, n less than VECTOR_N: where there are masks (VECTOR_TAILS) nothing beyond its
 * n elements is read, written or counted. Elsewhere n is always that of a whole vector, and what is left of a row
 * is another's. */
#ifndef DEVICE_VECTOR_H
#define DEVICE_VECTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <npumem/types.h>

#if defined(__AVX512VNNI__)
#include <immintrin.h>
enum { VECTOR_N = 16, VECTOR_TAILS = 1 };
#define VECTOR_OF(avx512, avx2, neon) avx512
#elif defined(__AVX2__)
#include <immintrin.h>
enum { VECTOR_N = 8, VECTOR_TAILS = 0 };
#define VECTOR_OF(avx512, avx2, neon) avx2
#else
#include <arm_neon.h>
enum { VECTOR_N = 4, VECTOR_TAILS = 0 };
#define VECTOR_OF(avx512, avx2, neon) neon
#endif

#include "daemon/device/implementations.h"

/* NAME__ISA, for the names of what a file defines. */
#define VECTOR_JOIN(name, isa) name##__##isa
#define VECTOR_JOIN_ISA(name, isa) VECTOR_JOIN(name, isa)
#define VECTOR_NAME(name) VECTOR_JOIN_ISA(name, VECTOR_ISA)

#define VECTOR static inline __attribute__((always_inline))
/* Of a loop whose vectors are to be registers. */
#ifdef __clang__
#define VECTOR_UNROLL _Pragma("unroll")
#else
#define VECTOR_UNROLL _Pragma("GCC unroll 16")
#endif

enum {
	VECTOR_BYTES = 4 * VECTOR_N,
	VECTOR_WORDS = 2 * VECTOR_N, /* of 16 bits */
	VECTOR_TABLE = 384,
};
/* Files are compiled with -flax-vector-conversions: all of these are the same bits. */
typedef int32_t vector __attribute__((vector_size(4 * VECTOR_N)));
typedef int8_t vector_bytes __attribute__((vector_size(4 * VECTOR_N)));
typedef int16_t vector_words __attribute__((vector_size(4 * VECTOR_N)));
typedef float vector_reals __attribute__((vector_size(4 * VECTOR_N)));
/* Elements that have a double each, and these. */
typedef int32_t vector_half __attribute__((vector_size(2 * VECTOR_N)));
typedef double vector_doubles __attribute__((vector_size(4 * VECTOR_N)));
typedef int64_t vector_longs __attribute__((vector_size(4 * VECTOR_N)));

VECTOR vector vector_set(int32_t x)
{
	return x - (vector){0};
}

/* Of containers: elements of 1 or 2 bytes, `bytes`, signed. */
VECTOR vector vector_set_raw(int32_t x, unsigned bytes)
{
	return bytes == 1 ? (vector)((int8_t)x - (vector_bytes){0}) : (vector)((int16_t)x - (vector_words){0});
}

VECTOR vector vector_add(vector a, vector b)
{
	return a + b;
}

VECTOR vector vector_sub(vector a, vector b)
{
	return a - b;
}

VECTOR vector vector_mul(vector a, vector b)
{
	return a * b;
}

VECTOR vector vector_and(vector a, vector b)
{
	return a & b;
}

VECTOR vector vector_or(vector a, vector b)
{
	return a | b;
}

VECTOR vector vector_index(void)
{
	return VECTOR_OF(((vector){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}),
			 ((vector){0, 1, 2, 3, 4, 5, 6, 7}), ((vector){0, 1, 2, 3}));
}

/* 2 * VECTOR_WORDS elements of 16 bits: eight of them in turn are in `low` and in `high`, as unpacking bytes
 * leaves them, so that a pack brings them back in order. */
struct vector_pair {
	vector low, high;
};

/* Each has, beside what vector.def needs,
 * vector_bytes_table_read(): byte index[i] of 256, which vector_bytes_table_load() took;
 * vector_sum_each(): element i is the sum of all of x[i], for VECTOR_N vectors;
 * vector_pair_load16(), vector_pair_store16();
 * vector_pair_outside(): how many are outside [low, high];
 * vector_even_raw(): containers 0, 2, … of a and then of b. */
#if defined(__AVX512VNNI__)
#include "daemon/device/fixed/rows/vectors/vector__avx512vnni.h"
#elif defined(__AVX2__)
#include "daemon/device/fixed/rows/vectors/vector__avx2.h"
#else
#include "daemon/device/fixed/rows/vectors/vector__neon.h"
#endif

/* Parameters that an instruction set does without. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define VECTOR_IS(type, name, parameters, avx512, avx2, neon)                                                     \
	VECTOR type name parameters                                                                               \
	{                                                                                                         \
		return (type)(VECTOR_OF(avx512, avx2, neon));                                                     \
	}
#define VECTOR_DOES(name, parameters, avx512, avx2, neon)                                                         \
	VECTOR void name parameters                                                                               \
	{                                                                                                         \
		VECTOR_OF(avx512, avx2, neon);                                                                    \
	}
#define VECTOR2(name, avx512, avx2, neon)                                                                         \
	VECTOR_IS(vector, name, (vector a, vector b), avx512(a, b), avx2(a, b), neon(a, b))
#define VECTOR2_RAW(name, avx512_8, avx512_16, avx2_8, avx2_16, neon_8, neon_16)                                  \
	VECTOR vector name(vector a, vector b, unsigned bytes)                                                    \
	{                                                                                                         \
		return bytes == 1 ? (vector)VECTOR_OF(avx512_8, avx2_8, neon_8)(a, b)                             \
				  : (vector)VECTOR_OF(avx512_16, avx2_16, neon_16)(a, b);                         \
	}
#ifdef __ARM_NEON
#define VECTOR_COUNT(count, sign) vdupq_n_s16((int16_t)((sign) * (int)(count)))
#else
#define VECTOR_COUNT(count, sign) _mm_cvtsi32_si128((int)(count))
#endif
#define VECTOR_SHIFT(name, avx512, avx2, neon, sign)                                                              \
	VECTOR vector name(vector a, unsigned count)                                                              \
	{                                                                                                         \
		return (vector)VECTOR_OF(avx512, avx2, neon)(a, VECTOR_COUNT(count, sign));                       \
	}
#include "daemon/device/fixed/rows/vectors/vector.def"
#pragma GCC diagnostic pop

/* n containers of `bytes`, 1 or 2, as elements, and back. */
VECTOR vector vector_load_containers(const void *from, unsigned bytes, int64_t i, int64_t n)
{
	return bytes == 1 ? vector_load8((const int8_t *)from + i, n)
			  : vector_load16((const int16_t *)from + i, n);
}

VECTOR void vector_store_containers(void *to, unsigned bytes, int64_t i, vector x, int64_t n)
{
	if (bytes == 1)
		vector_store8((int8_t *)to + i, x, n);
	else
		vector_store16((int16_t *)to + i, x, n);
}

/* Words 0 and 1 in an element, words stride and stride + 1 in the next one, … */
VECTOR vector vector_load_pairs(const int16_t *from, int64_t stride)
{
	return vector_gather_pairs(from, vector_index() * (int32_t)stride);
}

/* All elements of a vector in one. */
VECTOR int32_t vector_folded(vector x, vector of_two(vector a, vector b))
{
	VECTOR_UNROLL
	for (int by = VECTOR_N / 2; by > 0; by /= 2)
		x = of_two(x, vector_rotate(x, by));
	return x[0];
}

VECTOR void vector_add_wide_half(int64_t *sums, vector_half low, vector_half high, int64_t n)
{
	vector_longs x = vector_half_longs(high) * 256 + vector_half_longs(low);
	vector_store32(sums, (vector)(x + (vector_longs)vector_load32(sums, 2 * n)), 2 * n);
}

/* sums[i] += low[i] + 256 * high[i] for the first n elements; without masks n is VECTOR_N / 2 or VECTOR_N at
 * least. */
VECTOR void vector_add_wide(int64_t *sums, vector low, vector high, int64_t n)
{
	vector_add_wide_half(sums, vector_low_half(low), vector_low_half(high), n);
	if (n > VECTOR_N / 2)
		vector_add_wide_half(sums + VECTOR_N / 2, vector_high_half(low), vector_high_half(high),
				     n - VECTOR_N / 2);
}

/* b where a is negative, else a. */
VECTOR vector vector_if_negative(vector a, vector b)
{
	return vector_select(a >> 31, b, a);
}

/* b where a is zero, else x. */
VECTOR vector vector_if_zero(vector a, vector x, vector b)
{
	return vector_select((vector)(a == 0), b, x);
}

/* Adds one to the counts where x, of n elements, is zero. */
VECTOR vector vector_count_zeros(vector counts, vector x, int64_t n)
{
	return counts - (vector)(vector_first(n, x, vector_set(1)) == 0);
}

/* ---- words of 16 bits, two to each element ---- */

/* The low bytes, without a sign, and the high ones with it. */
VECTOR vector vector_words_low(vector words)
{
	return words & 0x00ff00ff;
}

VECTOR vector vector_words_high(vector words)
{
	return (vector)((vector_words)words >> 8);
}

VECTOR vector vector_words_sub(vector a, vector b)
{
	return (vector)((vector_words)a - (vector_words)b);
}

VECTOR vector vector_wrapped_add_raw(vector a, vector b, unsigned bytes)
{
	return bytes == 1 ? (vector)((vector_bytes)a + (vector_bytes)b)
			  : (vector)((vector_words)a + (vector_words)b);
}

VECTOR vector vector_wrapped_sub_raw(vector a, vector b, unsigned bytes)
{
	return bytes == 1 ? (vector)((vector_bytes)a - (vector_bytes)b)
			  : (vector)((vector_words)a - (vector_words)b);
}

VECTOR struct vector_pair vector_pair_left(struct vector_pair x, unsigned count)
{
	return (struct vector_pair){vector_words_left(x.low, count), vector_words_left(x.high, count)};
}

VECTOR struct vector_pair vector_pair_add(struct vector_pair a, struct vector_pair b)
{
	return (struct vector_pair){vector_wrapped_add_raw(a.low, b.low, 2),
				    vector_wrapped_add_raw(a.high, b.high, 2)};
}

VECTOR struct vector_pair vector_pair_sub(struct vector_pair a, struct vector_pair b)
{
	return (struct vector_pair){vector_words_sub(a.low, b.low), vector_words_sub(a.high, b.high)};
}

VECTOR struct vector_pair vector_pair_mul(struct vector_pair a, struct vector_pair b)
{
	return (struct vector_pair){(vector)((vector_words)a.low * (vector_words)b.low),
				    (vector)((vector_words)a.high * (vector_words)b.high)};
}

/* ---- by floating point; what is past +-2^20 may come out as anything past it ---- */

VECTOR vector_doubles vector_doubles_clamped(vector_doubles x)
{
	const vector_doubles end = (1 << 20) - (vector_doubles){0};
	return vector_doubles_max(vector_doubles_min(x, end), -end);
}

VECTOR vector_half vector_of_doubles(vector_doubles x, enum npumem_rounding rounding)
{
	const vector_doubles half = 0.5 - (vector_doubles){0}, sign = -0.0 - (vector_doubles){0};
	x = vector_doubles_clamped(x);
	if (rounding == NPUMEM_CONVERGENT)
		return vector_doubles_even(x);
	if (rounding == NPUMEM_UP)
		return vector_doubles_floor(x + half);
	x += (vector_doubles)((vector_longs)half | ((vector_longs)x & (vector_longs)sign));
	return __builtin_convertvector(x, vector_half);
}

/* floor(a * scale / b), with its lowest bit set where that is not exact. The elements of a and b have 8 bits, so
 * that those of a float decide; `scale` is a power of two. */
VECTOR vector vector_quotient8(vector a, vector b, double scale)
{
	const vector_reals end = (1 << 20) - (vector_reals){0};
	vector_reals x = __builtin_convertvector(a, vector_reals) / __builtin_convertvector(b, vector_reals);
	x = vector_reals_max(vector_reals_min(x * (float)scale, end), -end);
	vector floor = vector_reals_floor(x);
	return floor | (vector_reals_ceil(x) - floor);
}

VECTOR vector_half vector_quotient_half(vector_half a, vector_half b, double scale)
{
	vector_doubles x = vector_doubles_clamped(vector_half_doubles(a) / vector_half_doubles(b) * scale);
	vector_half floor = vector_doubles_floor(x);
	return floor | (vector_doubles_ceil(x) - floor);
}

/* The same for elements of 16 bits, by doubles. */
VECTOR vector vector_quotient16(vector a, vector b, double scale)
{
	return vector_of_halves(vector_quotient_half(vector_low_half(a), vector_low_half(b), scale),
				vector_quotient_half(vector_high_half(a), vector_high_half(b), scale));
}

VECTOR vector_half vector_scaled_half(vector_half a, vector_half b, double scale, enum npumem_rounding rounding)
{
	return vector_of_doubles(vector_half_doubles(a) * vector_half_doubles(b) * scale, rounding);
}

/* a * b * scale, rounded to an integer. By doubles, which are exact for products below 2^52 and a scale of 2^-52
 * to 2^52. */
VECTOR vector vector_scaled(vector a, vector b, double scale, enum npumem_rounding rounding)
{
	return vector_of_halves(vector_scaled_half(vector_low_half(a), vector_low_half(b), scale, rounding),
				vector_scaled_half(vector_high_half(a), vector_high_half(b), scale, rounding));
}

struct vector_scales {
	double coarse, beside, alone;
};

VECTOR vector_half vector_scaled_sum_half(vector_half coarse, vector_half fine, const struct vector_scales *scales,
					  enum npumem_rounding rounding)
{
	const vector_doubles beside = scales->beside - (vector_doubles){0};
	const vector_doubles alone = scales->alone - (vector_doubles){0};
	vector_doubles x = vector_half_doubles(coarse), scale = vector_doubles_if_zero(x, alone, beside);
	return vector_of_doubles(vector_half_doubles(fine) * scale + x * scales->coarse, rounding);
}

/* coarse and fine, each times its scale, which the finer one has by whether the coarser one is zero: rounded. */
VECTOR vector vector_scaled_sum(vector coarse, vector fine, const struct vector_scales *scales,
				enum npumem_rounding rounding)
{
	return vector_of_halves(
		vector_scaled_sum_half(vector_low_half(coarse), vector_low_half(fine), scales, rounding),
		vector_scaled_sum_half(vector_high_half(coarse), vector_high_half(fine), scales, rounding));
}

VECTOR vector_half vector_scaled_mean_half(vector_half a, int32_t n, double scale, enum npumem_rounding rounding)
{
	return vector_of_doubles(vector_half_doubles(a) * scale / (double)n, rounding);
}

/* a * scale / n, likewise, for 0 < n <= 2^16. */
VECTOR vector vector_scaled_mean(vector a, int32_t n, double scale, enum npumem_rounding rounding)
{
	return vector_of_halves(vector_scaled_mean_half(vector_low_half(a), n, scale, rounding),
				vector_scaled_mean_half(vector_high_half(a), n, scale, rounding));
}

/* n reals times a power of two, rounded to integers. The product is exact, or so small that it is none; a sum with
 * a half would not be, but twice the product is. */
VECTOR vector vector_of_reals(const float *from, float scale, enum npumem_rounding rounding, int64_t n)
{
	const vector_reals end = (1 << 20) - (vector_reals){0};
	vector_reals x = (vector_reals)vector_load32(from, n) * scale;
	x = vector_reals_max(vector_reals_min(x, end), -end);
	if (rounding == NPUMEM_CONVERGENT)
		return vector_reals_even(x);
	vector halves = vector_reals_floor(x + x);
	if (rounding == NPUMEM_UP)
		return (halves + 1) >> 1;
	/* Of a tie below zero nothing. */
	return (halves + ((vector_reals_ceil(x + x) - halves) | ((halves >> 31) + 1))) >> 1;
}

/* Elements of 16 bits times a power of two. */
VECTOR void vector_store_reals(float *to, vector x, float scale, int64_t n)
{
	vector_store32(to, (vector)(__builtin_convertvector(x, vector_reals) * scale), n);
}

/* ---- tables of up to VECTOR_TABLE words, as they lie in memory ---- */

#ifndef __AVX512VNNI__
struct vector_table {
	const int16_t *words;
};

VECTOR struct vector_table vector_table_load(const int16_t *words)
{
	return (struct vector_table){words};
}

/* Words `at` and at + 1 of the table, in the low and the high half of each element. */
VECTOR vector vector_table_pairs(const struct vector_table *table, vector at)
{
	return vector_gather_pairs(table->words, at);
}
#endif

#endif
