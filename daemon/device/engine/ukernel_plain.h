/* What a micro-kernel's file takes as plain C, compiled with its own instructions, where it has nothing better. */
#ifndef DEVICE_UKERNEL_PLAIN_H
#define DEVICE_UKERNEL_PLAIN_H

#include <string.h>

#include "daemon/device/engine/ukernel.h"

/* Every loop over registers must be unrolled whole, or they are an array in memory. */
#ifdef __clang__
#define UKERNEL_UNROLL _Pragma("unroll")
#else
#define UKERNEL_UNROLL _Pragma("GCC unroll 16")
#endif
#define UKERNEL_INLINE static inline __attribute__((always_inline))

#define UKERNEL_PLAIN_ROW(name, type)                                                                             \
	UKERNEL_INLINE void name(const type *from, int64_t step, type *to, int64_t n)                             \
	{                                                                                                         \
		if (step == 1)                                                                                    \
			memcpy(to, from, (size_t)n * sizeof(type));                                               \
		else if (step == 2)                                                                               \
			for (int64_t x = 0; x < n; x++)                                                           \
				to[x] = from[2 * x];                                                              \
		else                                                                                              \
			for (int64_t x = 0; x < n; x++)                                                           \
				to[x] = from[x * step];                                                           \
	}
UKERNEL_PLAIN_ROW(ukernel_plain_row8, uint8_t)
UKERNEL_PLAIN_ROW(ukernel_plain_row16, uint16_t)
#undef UKERNEL_PLAIN_ROW

UKERNEL_INLINE void ukernel_plain_spread(unsigned bytes, const void *from, int64_t from_row, int64_t step,
					 void *to, int64_t to_row, int64_t n_rows, int64_t n)
{
	for (int64_t y = 0; y < n_rows; y++) {
		if (bytes == 1)
			ukernel_plain_row8((const uint8_t *)from + y * from_row, step, (uint8_t *)to + y * to_row,
					   n);
		else
			ukernel_plain_row16((const uint16_t *)from + y * from_row, step,
					    (uint16_t *)to + y * to_row, n);
	}
}

UKERNEL_INLINE void ukernel_plain_scatter(unsigned bytes, const void *from, int64_t n,
					  const struct ukernel_rows *rows, void *to)
{
	const uint8_t *bytes_from = from;
	const uint16_t *words_from = from;
	int64_t x = rows->first;
	for (int64_t i = 0, row = 0; i < n; i++) {
		if (bytes == 1)
			((uint8_t *)to)[row + x * rows->step] = bytes_from[i];
		else
			((uint16_t *)to)[row + x * rows->step] = words_from[i];
		if (++x == rows->width) {
			x = 0;
			row += rows->way;
		}
	}
}

/* Of a struct ukernel: what this file has of moving elements. */
#define UKERNEL_PLAIN_MOVES .spread = ukernel_plain_spread, .scatter = ukernel_plain_scatter

/* Two lines into pairs of 16 bits, from element `first` on. */
UKERNEL_INLINE void ukernel_plain_pairs(unsigned bytes, const void *const *lines, int64_t first, int64_t n,
					uint8_t *to)
{
	int16_t *pairs = (int16_t *)to;
	int64_t end = (n + UKERNEL_COLUMNS - 1) / UKERNEL_COLUMNS * UKERNEL_COLUMNS;
	for (int64_t i = first; i < n; i++)
		for (unsigned j = 0; j < 2; j++)
			pairs[2 * i + j] =
				bytes == 1 ? ((const int8_t *)lines[j])[i] : ((const int16_t *)lines[j])[i];
	memset(pairs + 2 * n, 0, (size_t)(end - n) * UKERNEL_STEP_BYTES);
}

/* A block of a file whose sum() makes `columns` sums of each row, `rows` being a constant. */
#define UKERNEL_SUM_OF_ROWS(n)                                                                                    \
	static void sum_##n(const uint32_t *offsets, int64_t n_steps, const uint8_t *data,                        \
			    const uint8_t *weights, int32_t *sums)                                                \
	{                                                                                                         \
		sum(offsets, n_steps, data, weights, sums, n);                                                    \
	}
#define UKERNEL_BLOCK_OF_ROWS(columns)                                                                            \
	UKERNEL_SUM_OF_ROWS(1)                                                                                    \
	UKERNEL_SUM_OF_ROWS(2)                                                                                    \
	UKERNEL_SUM_OF_ROWS(3)                                                                                    \
	UKERNEL_SUM_OF_ROWS(4)                                                                                    \
	UKERNEL_SUM_OF_ROWS(5)                                                                                    \
	UKERNEL_SUM_OF_ROWS(6)                                                                                    \
	static void block(const uint32_t *offsets, int64_t n_steps, const uint8_t *data, const uint8_t *weights,  \
			  unsigned rows, unsigned n_columns, int32_t *sums)                                       \
	{                                                                                                         \
		static void (*const by_rows[UKERNEL_ROWS])(const uint32_t *, int64_t, const uint8_t *,            \
							   const uint8_t *, int32_t *) = {sum_1, sum_2, sum_3,    \
											  sum_4, sum_5, sum_6};   \
		for (unsigned i = 0; i < n_columns; i += (columns))                                               \
			by_rows[rows - 1](offsets, n_steps, data + UKERNEL_STEP_BYTES * i, weights, sums + i);    \
	}

UKERNEL_INLINE void ukernel_plain_widen(const int32_t *sums, unsigned rows, unsigned n_columns, unsigned shift,
					bool first, int64_t *wide)
{
	int64_t unit = (int64_t)1 << shift;
	for (unsigned row = 0; row < rows; row++, sums += UKERNEL_COLUMNS, wide += UKERNEL_COLUMNS)
		if (first)
			for (unsigned i = 0; i < n_columns; i++)
				wide[i] = sums[i] * unit;
		else
			for (unsigned i = 0; i < n_columns; i++)
				wide[i] += sums[i] * unit;
}

#endif
