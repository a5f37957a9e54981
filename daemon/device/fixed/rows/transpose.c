/* Squares of 16 bytes to a side (or of as many elements as these are) by registers, edges one by one. Of each row
 * a whole cache line is read before the next is: rows may all fall into one set of the cache. */
#include "daemon/device/fixed/rows/transpose.h"

#include <stdbool.h>
#include <string.h>

enum { LINE_BYTES = 64, VECTOR_BYTES = 16 };

static void copy(unsigned bytes, uint8_t *to, const uint8_t *from)
{
	if (bytes == 1)
		*to = *from;
	else if (bytes == 2)
		memcpy(to, from, 2);
	else
		memcpy(to, from, 4);
}

/* Steps are in bytes. */
static void edge(unsigned bytes, const uint8_t *from, int64_t from_step, int64_t n_rows, int64_t n_columns,
		 uint8_t *to, int64_t to_step)
{
	for (int64_t c = 0; c < n_columns; c++)
		for (int64_t r = 0; r < n_rows; r++)
			copy(bytes, to + c * to_step + r * bytes, from + r * from_step + c * bytes);
}

#ifdef __x86_64__
#include <emmintrin.h>

/* n rows of 16 bytes. Each step interleaves the first half of the rows with the second: after as many as halve n
 * to one, row c has element c of every row. */
#define SQUARE(name, n, low, high)                                                                                \
	static void name(const uint8_t *from, int64_t from_step, uint8_t *to, int64_t to_step)                    \
	{                                                                                                         \
		__m128i a[n], b[n];                                                                               \
		for (int i = 0; i < n; i++)                                                                       \
			a[i] = _mm_loadu_si128((const void *)(from + i * from_step));                             \
		for (int half = n; half > 1; half /= 2) {                                                         \
			for (int i = 0; i < n / 2; i++) {                                                         \
				b[2 * i] = low(a[i], a[i + n / 2]);                                               \
				b[2 * i + 1] = high(a[i], a[i + n / 2]);                                          \
			}                                                                                         \
			memcpy(a, b, sizeof(a));                                                                  \
		}                                                                                                 \
		for (int i = 0; i < n; i++)                                                                       \
			_mm_storeu_si128((void *)(to + i * to_step), a[i]);                                       \
	}
SQUARE(square_1, 16, _mm_unpacklo_epi8, _mm_unpackhi_epi8)
SQUARE(square_2, 8, _mm_unpacklo_epi16, _mm_unpackhi_epi16)
SQUARE(square_4, 4, _mm_unpacklo_epi32, _mm_unpackhi_epi32)

static void square(unsigned bytes, const uint8_t *from, int64_t from_step, uint8_t *to, int64_t to_step)
{
	if (bytes == 1)
		square_1(from, from_step, to, to_step);
	else if (bytes == 2)
		square_2(from, from_step, to, to_step);
	else
		square_4(from, from_step, to, to_step);
}

void transpose_line__avx512vnni(unsigned bytes, const uint8_t *from, int64_t from_step, uint8_t *to,
				int64_t to_step);

static bool line(enum isa isa, unsigned bytes, const uint8_t *from, int64_t from_step, uint8_t *to,
		 int64_t to_step)
{
	if (isa < ISA_AVX512VNNI)
		return false;
	transpose_line__avx512vnni(bytes, from, from_step, to, to_step);
	return true;
}
#else
static bool line(enum isa isa, unsigned bytes, const uint8_t *from, int64_t from_step, uint8_t *to,
		 int64_t to_step)
{
	(void)isa, (void)bytes, (void)from, (void)from_step, (void)to, (void)to_step;
	return false;
}

static void square(unsigned bytes, const uint8_t *from, int64_t from_step, uint8_t *to, int64_t to_step)
{
	edge(bytes, from, from_step, VECTOR_BYTES / bytes, VECTOR_BYTES / bytes, to, to_step);
}
#endif

/* Columns [first, end) of all rows, a line of each at most. */
static void band(enum isa isa, unsigned bytes, const uint8_t *from, int64_t from_step, int64_t n_rows,
		 int64_t first, int64_t end, uint8_t *to, int64_t to_step)
{
	int64_t side = VECTOR_BYTES / bytes, r = 0;
	for (; r + side <= n_rows; r += side) {
		int64_t c = first;
		const uint8_t *rows = from + r * from_step;
		if ((end - first) * bytes == LINE_BYTES &&
		    line(isa, bytes, rows + first * bytes, from_step, to + first * to_step + r * bytes, to_step))
			continue;
		for (; c + side <= end; c += side)
			square(bytes, rows + c * bytes, from_step, to + c * to_step + r * bytes, to_step);
		edge(bytes, rows + c * bytes, from_step, side, end - c, to + c * to_step + r * bytes, to_step);
	}
	edge(bytes, from + r * from_step + first * bytes, from_step, n_rows - r, end - first,
	     to + first * to_step + r * bytes, to_step);
}

void transpose(enum isa isa, unsigned bytes, const void *from, int64_t from_row, int64_t n_rows, int64_t n_columns,
	       void *to, int64_t to_row)
{
	int64_t width = LINE_BYTES / bytes;
	for (int64_t c = 0; c < n_columns; c += width)
		band(isa, bytes, from, from_row * bytes, n_rows, c, c + width < n_columns ? c + width : n_columns,
		     to, to_row * bytes);
}
