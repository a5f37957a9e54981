/* Squares of 16 bytes to a side (or of as many elements as these are) by registers, edges one by one. Of each row
 * a whole cache line is read before the next is: rows may all fall into one set of the cache. */
#include "daemon/device/fixed/rows/transpose.h"

#include <string.h>

#include "daemon/device/implementations.h"

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

typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef uint16_t words8 __attribute__((vector_size(16)));
typedef uint32_t elements4 __attribute__((vector_size(16)));

/* n rows of 16 bytes. Each step interleaves the first half of the rows with the second: after as many as halve n
 * to one, row c has element c of every row. */
#define SQUARE(name, type, n, low, high)                                                                          \
	static void name(const uint8_t *from, int64_t from_step, uint8_t *to, int64_t to_step)                    \
	{                                                                                                         \
		type a[n], b[n];                                                                                  \
		for (int i = 0; i < n; i++)                                                                       \
			memcpy(&a[i], from + i * from_step, sizeof(type));                                        \
		for (int half = n; half > 1; half /= 2) {                                                         \
			for (int i = 0; i < n / 2; i++) {                                                         \
				b[2 * i] = __builtin_shufflevector(a[i], a[i + n / 2], low);                      \
				b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + n / 2], high);                 \
			}                                                                                         \
			memcpy(a, b, sizeof(a));                                                                  \
		}                                                                                                 \
		for (int i = 0; i < n; i++)                                                                       \
			memcpy(to + i * to_step, &a[i], sizeof(type));                                            \
	}
#define LIST(...) __VA_ARGS__
SQUARE(square_1, bytes16, 16, LIST(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
       LIST(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31))
SQUARE(square_2, words8, 8, LIST(0, 8, 1, 9, 2, 10, 3, 11), LIST(4, 12, 5, 13, 6, 14, 7, 15))
SQUARE(square_4, elements4, 4, LIST(0, 4, 1, 5), LIST(2, 6, 3, 7))

static void square(unsigned bytes, const uint8_t *from, int64_t from_step, uint8_t *to, int64_t to_step)
{
	if (bytes == 1)
		square_1(from, from_step, to, to_step);
	else if (bytes == 2)
		square_2(from, from_step, to, to_step);
	else
		square_4(from, from_step, to, to_step);
}

/* Columns [first, end) of all rows, a line of each at most. */
static void band(enum isa isa, unsigned bytes, const uint8_t *from, int64_t from_step, int64_t n_rows,
		 int64_t first, int64_t end, uint8_t *to, int64_t to_step)
{
	int64_t side = VECTOR_BYTES / bytes, r = 0;
	for (; r + side <= n_rows; r += side) {
		int64_t c = first;
		const uint8_t *rows = from + r * from_step;
		if (implementations[isa].transpose_line && (end - first) * bytes == LINE_BYTES) {
			implementations[isa].transpose_line(bytes, rows + first * bytes, from_step,
							    to + first * to_step + r * bytes, to_step);
			continue;
		}
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
