/* The folds of one instruction set. */
#include "daemon/device/fixed/rows/folds.h"

#include "daemon/device/fixed/rows/vectors/vector.h"

typedef vector fold_function(vector a, vector b);

VECTOR vector row_at(const struct fold_rows *rows, int64_t row, int64_t i, int64_t n)
{
	return vector_load_containers(rows->data, rows->bytes, row * rows->row + i, n);
}

enum {
	FOLD_ABREAST = 4,
	FOLD_ROWS = 8, /* read side by side, each from its first to its last byte */
	FOLD_COLUMNS_BYTES = 1024,
};

/* Some rows from row r on, and, but for the first ones, what is in `to`. */
VECTOR vector column(const struct fold_rows *rows, fold_function *fold, int64_t r, const int n_rows, int64_t i,
		     int64_t n, const int32_t *to)
{
	vector x = row_at(rows, r, i, n);
	VECTOR_UNROLL
	for (int k = 1; k < n_rows; k++)
		x = fold(x, row_at(rows, r + k, i, n));
	return r > 0 ? fold(x, vector_load32(to + i, n)) : x;
}

VECTOR int64_t column_rows(const struct fold_rows *rows, fold_function *fold, int64_t r, const int n_rows,
			   int64_t n, int32_t *to)
{
	int64_t i = 0;
	for (; i + VECTOR_N <= n; i += VECTOR_N)
		vector_store32(to + i, column(rows, fold, r, n_rows, i, VECTOR_N, to), VECTOR_N);
	if (VECTOR_TAILS && i < n) {
		vector_store32(to + i, column(rows, fold, r, n_rows, i, n - i, to), n - i);
		i = n;
	}
	return i;
}

VECTOR int64_t columns(const struct fold_rows *from, fold_function *fold, int64_t n, int32_t *to)
{
	const struct fold_rows rows = *from;
	int64_t done = 0, r = 0;
	for (; r + FOLD_ROWS <= rows.n_rows; r += FOLD_ROWS)
		done = column_rows(&rows, fold, r, FOLD_ROWS, n, to);
	for (; r + 2 < rows.n_rows; r += 3)
		done = column_rows(&rows, fold, r, 3, n, to);
	for (; r < rows.n_rows; r++)
		done = column_rows(&rows, fold, r, 1, n, to);
	return done;
}

typedef vector raw_function(vector to, vector x, unsigned bytes);

VECTOR void raw_column_rows(const struct fold_rows *rows, raw_function *raw, const unsigned bytes, int64_t r,
			    const int n_rows, const uint8_t *from, int64_t size, uint8_t *to)
{
	const int64_t row = rows->row * (int64_t)bytes;
	for (int64_t i = 0; i < size; i += VECTOR_BYTES) {
		const uint8_t *at = from + r * row + i;
		vector x = vector_load_raw(at, VECTOR_BYTES);
		VECTOR_UNROLL
		for (int k = 1; k < n_rows; k++)
			x = raw(x, vector_load_raw(at + k * row, VECTOR_BYTES), bytes);
		if (r > 0)
			x = raw(x, vector_load_raw(to + i, VECTOR_BYTES), bytes);
		vector_store_raw(to + i, x, VECTOR_BYTES);
	}
}

/* As containers, whole vectors of them, and then widened. */
VECTOR int64_t raw_columns(const struct fold_rows *rows, raw_function *raw, const unsigned bytes, int64_t n,
			   int32_t *to)
{
	uint8_t parts[FOLD_COLUMNS_BYTES];
	int64_t end = n * bytes / VECTOR_BYTES * VECTOR_BYTES;
	for (int64_t at = 0, size; at < end; at += size) {
		const uint8_t *from = (const uint8_t *)rows->data + at;
		int64_t r = 0;
		size = end - at < FOLD_COLUMNS_BYTES ? end - at : FOLD_COLUMNS_BYTES;
		for (; r + FOLD_ROWS <= rows->n_rows; r += FOLD_ROWS)
			raw_column_rows(rows, raw, bytes, r, FOLD_ROWS, from, size, parts);
		for (; r < rows->n_rows; r++)
			raw_column_rows(rows, raw, bytes, r, 1, from, size, parts);
		const struct fold_rows folded = {parts, bytes, 0, 1};
		for (int64_t i = 0; i < size / bytes; i += VECTOR_N)
			vector_store32(to + at / bytes + i, row_at(&folded, 0, i, VECTOR_N), VECTOR_N);
	}
	return end / bytes;
}

/* Whole vectors of containers, four at a time, which do not wait for each other, and n elements make one at least.
 * A sum's are 32 bits wide; of others the last vector, which may overlap the one before, is folded twice. */
VECTOR int64_t across_raw(const struct fold_rows *rows, fold_function *fold, raw_function *raw, int32_t start,
			  const unsigned bytes, int64_t n, int32_t *to)
{
	const bool is_sum = start == 0;
	const uint8_t *from = rows->data;
	int32_t end = start < 0 ? -(1 << (8 * bytes - 1)) : (1 << (8 * bytes - 1)) - 1;
	vector x[FOLD_ABREAST];
	int64_t size = n * bytes, i = 0;
	VECTOR_UNROLL
	for (int v = 0; v < FOLD_ABREAST; v++)
		x[v] = is_sum ? vector_set(0) : vector_set_raw(end, bytes);
	for (; i + FOLD_ABREAST * VECTOR_BYTES <= size; i += FOLD_ABREAST * VECTOR_BYTES) {
		VECTOR_UNROLL
		for (int v = 0; v < FOLD_ABREAST; v++)
			x[v] = raw(x[v], vector_load_raw(from + i + v * VECTOR_BYTES, VECTOR_BYTES), bytes);
	}
	for (; i + VECTOR_BYTES <= size; i += VECTOR_BYTES)
		x[0] = raw(x[0], vector_load_raw(from + i, VECTOR_BYTES), bytes);
	if (!is_sum && i < size) {
		x[1] = raw(x[1], vector_load_raw(from + size - VECTOR_BYTES, VECTOR_BYTES), bytes);
		i = size;
	}
	if (is_sum && VECTOR_TAILS && i < size) {
		x[1] = raw(x[1], vector_load_raw(from + i, size - i), bytes);
		i = size;
	}
	if (is_sum) {
		*to = vector_folded(fold(fold(x[0], x[1]), fold(x[2], x[3])), fold);
		return i / bytes;
	}
	int8_t parts[VECTOR_BYTES];
	vector_store_raw(parts, raw(raw(x[0], x[1], bytes), raw(x[2], x[3], bytes), bytes), VECTOR_BYTES);
	const struct fold_rows last = {parts, bytes, 0, 1};
	vector y = row_at(&last, 0, 0, VECTOR_N);
	for (unsigned v = 1; v < 4 / bytes; v++)
		y = fold(y, row_at(&last, 0, (int64_t)v * VECTOR_N, VECTOR_N));
	*to = vector_folded(y, fold);
	return i / bytes;
}

VECTOR int64_t across(const struct fold_rows *rows, fold_function *fold, raw_function *raw, int32_t start,
		      int64_t n, int32_t *to)
{
	if (n * rows->bytes >= VECTOR_BYTES)
		return rows->bytes == 1 ? across_raw(rows, fold, raw, start, 1, n, to)
					: across_raw(rows, fold, raw, start, 2, n, to);
	vector x = vector_set(start);
	int64_t i = 0;
	for (; i + VECTOR_N <= n; i += VECTOR_N)
		x = fold(x, row_at(rows, 0, i, VECTOR_N));
	if (VECTOR_TAILS && i < n) {
		x = fold(x, vector_first(n - i, row_at(rows, 0, i, n - i), vector_set(start)));
		i = n;
	}
	*to = vector_folded(x, fold);
	return i;
}

/* Sums of VECTOR_N pieces side by side; past the last one that again. */
VECTOR int64_t pieces_sum(const struct fold_pieces *pieces, const unsigned bytes, int64_t n, int32_t *to)
{
	int64_t size = VECTOR_TAILS ? n * bytes : n * bytes / VECTOR_BYTES * VECTOR_BYTES,
		last = pieces->n_pieces - 1;
	for (int64_t i = 0; i <= last; i += VECTOR_N) {
		vector sums[VECTOR_N];
		int32_t totals[VECTOR_N];
		VECTOR_UNROLL
		for (int v = 0; v < VECTOR_N; v++) {
			const uint8_t *from = pieces->data[i + v < last ? i + v : last];
			sums[v] = vector_set(0);
			for (int64_t at = 0; at < size; at += VECTOR_BYTES)
				sums[v] = vector_sum_raw(sums[v], vector_load_raw(from + at, size - at), bytes);
		}
		vector_store32(totals, vector_sum_each(sums), VECTOR_N);
		for (int64_t v = 0; v < VECTOR_N && i + v <= last; v++)
			to[i + v] = totals[v];
	}
	return size / bytes;
}

VECTOR int64_t across_each(const struct fold_pieces *pieces, fold_function *fold, raw_function *raw, int32_t start,
			   int64_t n, int32_t *to)
{
	int64_t done = n;
	if (start == 0)
		return pieces->bytes == 1 ? pieces_sum(pieces, 1, n, to) : pieces_sum(pieces, 2, n, to);
	for (int64_t i = 0; i < pieces->n_pieces; i++) {
		const struct fold_rows row = {pieces->data[i], pieces->bytes, 0, 1};
		done = across(&row, fold, raw, start, n, to + i);
	}
	return done;
}

/* ---- in containers of `bytes` that hold every result ---- */

/* Of bytes, words or, as 4, elements. */
VECTOR vector fold_containers(vector a, vector b, fold_function *fold, raw_function *raw, bool is_sum,
			      unsigned bytes)
{
	return bytes == 4 ? fold(a, b) : is_sum ? vector_wrapped_add_raw(a, b, bytes) : raw(a, b, bytes);
}

VECTOR vector narrow_row_at(const struct fold_rows *rows, int64_t r, int64_t i, const unsigned bytes, int64_t n)
{
	const uint8_t *from = (const uint8_t *)rows->data + (r * rows->row + i) * rows->bytes;
	return rows->bytes == bytes ? vector_load_raw(from, n * bytes) : vector_load_words8(from, n);
}

VECTOR int64_t narrow_columns(const struct fold_rows *from, fold_function *fold, raw_function *raw, bool is_sum,
			      const unsigned bytes, int64_t n, uint8_t *to)
{
	const struct fold_rows rows = *from;
	const int64_t step = VECTOR_BYTES / bytes;
	int64_t i = 0;
	for (; VECTOR_TAILS ? i < n : i < n && step <= n; i += step) {
		if (!VECTOR_TAILS && i + step > n) /* again some of those before */
			i = n - step;
		vector x = narrow_row_at(&rows, 0, i, bytes, n - i);
		for (int64_t r = 1; r < rows.n_rows; r++)
			x = fold_containers(x, narrow_row_at(&rows, r, i, bytes, n - i), fold, raw, is_sum, bytes);
		vector_store_raw(to + i * bytes, x, (n - i) * bytes);
	}
	return i < n ? i : n;
}

/* What n windows see first, the first of them at `from`. */
VECTOR vector window_start(const uint8_t *from, const unsigned bytes, const int64_t stride, int64_t n)
{
	int64_t last = (2 * n - 1) * bytes;
	if (stride == 1)
		return vector_load_raw(from, n * bytes);
	if (bytes == 4)
		return vector_load32_every((const int32_t *)(const void *)from, stride,
					   n < VECTOR_N ? n : VECTOR_N);
	vector high = VECTOR_TAILS && last <= VECTOR_BYTES
			      ? vector_set(0)
			      : vector_load_raw(from + VECTOR_BYTES, last - VECTOR_BYTES);
	return vector_even_raw(vector_load_raw(from, last), high, bytes);
}

VECTOR int64_t windows_by(const uint8_t *columns, fold_function *fold, raw_function *raw, bool is_sum,
			  const unsigned bytes, const int64_t stride, const struct fold_window *window, int64_t n,
			  uint8_t *to)
{
	const struct fold_window each = *window;
	const int64_t step = VECTOR_BYTES / bytes;
	int64_t i = 0;
	/* Without masks every second one reads one past the last window. */
	int64_t end = VECTOR_TAILS || bytes == 4 ? n : n - stride + 1;
	for (; VECTOR_TAILS ? i < n : i < end && step <= end; i += step) {
		if (!VECTOR_TAILS && i + step > end)
			i = end - step;
		const uint8_t *from = columns + i * stride * bytes;
		vector x = window_start(from, bytes, stride, n - i);
		for (int64_t t = 1; t < each.taps; t++)
			x = fold_containers(x,
					    window_start(from + t * each.dilation * bytes, bytes, stride, n - i),
					    fold, raw, is_sum, bytes);
		vector_store_raw(to + i * bytes, x, (n - i) * bytes);
	}
	return i < n ? i : n;
}

/* With the widths and the usual strides as constants. */
VECTOR int64_t windows(const void *columns, unsigned bytes, fold_function *fold, raw_function *raw, bool is_sum,
		       const struct fold_window *window, int64_t n, void *to)
{
	int64_t stride = window->stride;
	if (stride == 1)
		return bytes == 1   ? windows_by(columns, fold, raw, is_sum, 1, 1, window, n, to)
		       : bytes == 2 ? windows_by(columns, fold, raw, is_sum, 2, 1, window, n, to)
				    : windows_by(columns, fold, raw, is_sum, 4, 1, window, n, to);
	if (stride == 2)
		return bytes == 1   ? windows_by(columns, fold, raw, is_sum, 1, 2, window, n, to)
		       : bytes == 2 ? windows_by(columns, fold, raw, is_sum, 2, 2, window, n, to)
				    : windows_by(columns, fold, raw, is_sum, 4, 2, window, n, to);
	return windows_by(columns, fold, raw, is_sum, 4, stride, window, n, to);
}

#define FOLD(name, NAME, start, of_vectors, of_raw, of_two)                                                       \
	static int64_t name##_wide_columns(const struct fold_rows *rows, int64_t n, int32_t *to)                  \
	{                                                                                                         \
		struct fold_rows rest = *rows;                                                                    \
		int64_t done = 0;                                                                                 \
		if ((start) != 0 && rows->n_rows >= FOLD_ROWS)                                                    \
			done = rows->bytes == 1 ? raw_columns(rows, of_raw, 1, n, to)                             \
						: raw_columns(rows, of_raw, 2, n, to);                            \
		rest.data = (const uint8_t *)rows->data + done * rows->bytes;                                     \
		return done + (done < n ? columns(&rest, of_vectors, n - done, to + done) : 0);                   \
	}                                                                                                         \
	static int64_t name##_columns(const struct fold_rows *rows, unsigned bytes, int64_t n, void *to)          \
	{                                                                                                         \
		return bytes == 1   ? narrow_columns(rows, of_vectors, of_raw, (start) == 0, 1, n, to)            \
		       : bytes == 2 ? narrow_columns(rows, of_vectors, of_raw, (start) == 0, 2, n, to)            \
				    : name##_wide_columns(rows, n, to);                                           \
	}                                                                                                         \
	static int64_t name##_windows(const void *columns, unsigned bytes, const struct fold_window *window,      \
				      int64_t n, void *to)                                                        \
	{                                                                                                         \
		return windows(columns, bytes, of_vectors, of_raw, (start) == 0, window, n, to);                  \
	}                                                                                                         \
	static int64_t name##_across(const struct fold_rows *rows, int64_t n, int32_t *to)                        \
	{                                                                                                         \
		return across(rows, of_vectors, of_raw, start, n, to);                                            \
	}                                                                                                         \
	static int64_t name##_each(const struct fold_pieces *pieces, int64_t n, int32_t *to)                      \
	{                                                                                                         \
		return across_each(pieces, of_vectors, of_raw, start, n, to);                                     \
	}
#include "daemon/device/fixed/rows/folds.def"
#undef FOLD

const struct folds VECTOR_NAME(folds) = {{
#define FOLD(name, NAME, start, of_vectors, of_raw, of_two)                                                       \
	{name##_columns, name##_windows, name##_across, name##_each},
#include "daemon/device/fixed/rows/folds.def"
#undef FOLD
}};
