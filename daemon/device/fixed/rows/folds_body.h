/* The folds of one instruction set: a template over the vectors that were included before it. FOLDS names the
 * table. */
#include "daemon/device/fixed/rows/folds.h"

typedef vector fold_function(vector a, vector b);

VECTOR vector row_at(const struct fold_rows *rows, int64_t row, int64_t i, int64_t n)
{
	i += row * rows->row;
	if (rows->bytes == 1)
		return vector_load8((const int8_t *)rows->data + i, n);
	return vector_load16((const int16_t *)rows->data + i, n);
}

VECTOR void column(const struct fold_rows *rows, fold_function *fold, int64_t i, int64_t n, int32_t *to)
{
	vector x = row_at(rows, 0, i, n);
	for (int64_t r = 1; r < rows->n_rows; r++)
		x = fold(x, row_at(rows, r, i, n));
	vector_store32(to + i, x, n);
}

VECTOR int64_t columns(const struct fold_rows *from, fold_function *fold, int64_t n, int32_t *to)
{
	const struct fold_rows rows = *from;
	int64_t i = 0;
	for (; i + VECTOR_N <= n; i += VECTOR_N)
		column(&rows, fold, i, VECTOR_N, to);
	if (VECTOR_TAILS && i < n) {
		column(&rows, fold, i, n - i, to);
		i = n;
	}
	return i;
}

VECTOR void window(const int32_t *columns, int64_t stride, int64_t taps, fold_function *fold, int64_t n,
		   int32_t *to)
{
	vector x = vector_load32_every(columns, stride, n);
	for (int64_t t = 1; t < taps; t++)
		x = fold(x, vector_load32_every(columns + t, stride, n));
	vector_store32(to, x, n);
}

VECTOR int64_t windows(const int32_t *columns, int64_t stride, int64_t taps, fold_function *fold, int64_t n,
		       int32_t *to)
{
	int64_t i = 0;
	for (; i + VECTOR_N <= n; i += VECTOR_N)
		window(columns + i * stride, stride, taps, fold, VECTOR_N, to + i);
	if (VECTOR_TAILS && i < n) {
		window(columns + i * stride, stride, taps, fold, n - i, to + i);
		i = n;
	}
	return i;
}

/* Four at a time, which do not wait for each other. */
VECTOR int64_t across(const struct fold_rows *rows, fold_function *fold, int32_t start,
		      int32_t (*of_two)(int32_t, int32_t), int64_t n, int32_t *to)
{
	vector x[4] = {vector_set(start), vector_set(start), vector_set(start), vector_set(start)};
	int64_t i = 0;
	for (; i + 4 * VECTOR_N <= n; i += 4 * VECTOR_N) {
		VECTOR_UNROLL
		for (int64_t v = 0; v < 4; v++)
			x[v] = fold(x[v], row_at(rows, 0, i + v * VECTOR_N, VECTOR_N));
	}
	for (; i + VECTOR_N <= n; i += VECTOR_N)
		x[0] = fold(x[0], row_at(rows, 0, i, VECTOR_N));
	if (VECTOR_TAILS && i < n) {
		x[1] = fold(x[1], vector_first(n - i, row_at(rows, 0, i, n - i), vector_set(start)));
		i = n;
	}
	int32_t parts[VECTOR_N];
	vector_store32(parts, fold(fold(x[0], x[1]), fold(x[2], x[3])), VECTOR_N);
	*to = start;
	for (int64_t v = 0; v < VECTOR_N; v++)
		*to = of_two(*to, parts[v]);
	return i;
}

#define FOLD(name, NAME, start, of_vectors, of_two)                                                               \
	static inline int32_t name##_of_two(int32_t a, int32_t b)                                                 \
	{                                                                                                         \
		return of_two;                                                                                    \
	}                                                                                                         \
	static int64_t name##_columns(const struct fold_rows *rows, int64_t n, int32_t *to)                       \
	{                                                                                                         \
		return columns(rows, of_vectors, n, to);                                                          \
	}                                                                                                         \
	static int64_t name##_windows(const int32_t *columns, int64_t stride, int64_t taps, int64_t n,            \
				      int32_t *to)                                                                \
	{                                                                                                         \
		if (stride == 1)                                                                                  \
			return windows(columns, 1, taps, of_vectors, n, to);                                      \
		if (stride == 2)                                                                                  \
			return windows(columns, 2, taps, of_vectors, n, to);                                      \
		return windows(columns, stride, taps, of_vectors, n, to);                                         \
	}                                                                                                         \
	static int64_t name##_across(const struct fold_rows *rows, int64_t n, int32_t *to)                        \
	{                                                                                                         \
		return across(rows, of_vectors, start, name##_of_two, n, to);                                     \
	}
#include "daemon/device/fixed/rows/folds.def"
#undef FOLD

const struct folds FOLDS[FOLD_N] = {
#define FOLD(name, NAME, start, of_vectors, of_two) {name##_columns, name##_windows, name##_across},
#include "daemon/device/fixed/rows/folds.def"
#undef FOLD
};
