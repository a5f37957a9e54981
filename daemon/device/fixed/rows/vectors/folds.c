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
	int32_t end = fold_start_in(start, bytes);
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

/* ---- pools ---- */

struct fold_by {
	fold_function *fold;
	raw_function *raw;
	int32_t start;
};

VECTOR vector pool_fold(const struct fold_by *by, vector a, vector b, const unsigned width)
{
	if (width == 4)
		return by->fold(a, b);
	return by->start == 0 ? vector_wrapped_add_raw(a, b, width) : by->raw(a, b, width);
}

VECTOR vector pool_load(const uint8_t *from, const unsigned bytes, const unsigned width)
{
	if (bytes == width)
		return vector_load_raw(from, VECTOR_BYTES);
	if (width == 2)
		return vector_load_words8(from, VECTOR_WORDS);
	return bytes == 1 ? vector_load8(from, VECTOR_N) : vector_load16(from, VECTOR_N);
}

/* Each row has its padding before, its columns, its padding after. They are written in this order: whole vectors
 * write past the end of a part, and the next part overwrites that. */
VECTOR void pool_columns(const struct fold_pool *p, const struct fold_by *by, const unsigned bytes,
			 const unsigned width)
{
	const int64_t wide = p->wide * bytes, pitch = fold_pool_pitch(p) * width, after = p->after * width,
		      step = VECTOR_BYTES / width * bytes, taps = p->taps_down, down = p->dilation_down * wide;
	const int32_t end = fold_start_in(by->start, width);
	const vector start = width == 4 ? vector_set(end) : vector_set_raw(end, width);
	for (int64_t row = 0; row < p->n_rows; row++) {
		const uint8_t *from = (const uint8_t *)p->in + row * p->row_step * wide;
		uint8_t *to = (uint8_t *)p->columns + row * pitch;
		for (int64_t i = 0; i < p->before * width; i += VECTOR_BYTES)
			vector_store_raw(to + i, start, VECTOR_BYTES);
		to += p->before * width;
		for (int64_t i = 0; i < wide; i += step) {
			vector x = pool_load(from + i, bytes, width);
			for (int64_t t = 1; t < taps; t++)
				x = pool_fold(by, x, pool_load(from + t * down + i, bytes, width), width);
			vector_store_raw(to + i / bytes * width, x, VECTOR_BYTES);
		}
		for (int64_t i = 0; i < after; i += VECTOR_BYTES)
			vector_store_raw(to + wide / bytes * width + i, start, VECTOR_BYTES);
	}
}

/* Every one, or every second one. */
VECTOR vector pool_every(const uint8_t *columns, const unsigned width, const int64_t stride)
{
	vector first = vector_load_raw(columns, VECTOR_BYTES);
	return stride == 1 ? first
			   : vector_even_raw(first, vector_load_raw(columns + VECTOR_BYTES, VECTOR_BYTES), width);
}

/* `to` may be the columns. */
VECTOR void pool_windows(const struct fold_pool *p, const struct fold_by *by, const uint8_t *columns,
			 const unsigned width, const int64_t stride, int64_t n, uint8_t *to)
{
	const int64_t taps = p->taps, dilation = p->dilation * width;
	for (int64_t i = 0; i < n * width; i += VECTOR_BYTES) {
		vector x = pool_every(columns + i * stride, width, stride);
		for (int64_t t = 1; t < taps; t++)
			x = pool_fold(by, x, pool_every(columns + i * stride + t * dilation, width, stride),
				      width);
		vector_store_raw(to + i, x, VECTOR_BYTES);
	}
}

VECTOR void pool_pick(const uint8_t *from, const unsigned width, const int64_t stride, int64_t n, uint8_t *to)
{
	for (int64_t i = 0; i < n; i++)
		memcpy(to + i * width, from + i * stride * width, width);
}

/* Other strides make a window at each column, and most are dropped. Rows are made in order, as each writes more
 * than its own. */
VECTOR void pool_in(const struct fold_pool *from, const struct fold_by *by, const unsigned bytes,
		    const unsigned width)
{
	const struct fold_pool copy = *from, *p = &copy;
	uint8_t *columns = p->columns, *to = p->to;
	pool_columns(p, by, bytes, width);
	for (int64_t row = 0; row < p->n_rows; row++) {
		if (p->stride == 1) {
			pool_windows(p, by, columns, width, 1, p->n, to);
		} else if (p->stride == 2 && width < 4) {
			pool_windows(p, by, columns, width, 2, p->n, to);
		} else {
			pool_windows(p, by, columns, width, 1, (p->n - 1) * p->stride + 1, columns);
			if (p->stride == 2)
				pool_pick(columns, width, 2, p->n, to);
			else
				pool_pick(columns, width, p->stride, p->n, to);
		}
		columns += fold_pool_pitch(p) * width;
		to += p->n * width;
	}
}

VECTOR void pool(const struct fold_pool *p, const struct fold_by *by)
{
	if (p->width == 1)
		pool_in(p, by, 1, 1);
	else if (p->width == 2)
		p->bytes == 1 ? pool_in(p, by, 1, 2) : pool_in(p, by, 2, 2);
	else
		p->bytes == 1 ? pool_in(p, by, 1, 4) : pool_in(p, by, 2, 4);
}

#define FOLD(name, NAME, start, of_vectors, of_raw, of_two)                                                       \
	static int64_t name##_columns(const struct fold_rows *rows, int64_t n, int32_t *to)                       \
	{                                                                                                         \
		struct fold_rows rest = *rows;                                                                    \
		int64_t done = 0;                                                                                 \
		if ((start) != 0 && rows->n_rows >= FOLD_ROWS)                                                    \
			done = rows->bytes == 1 ? raw_columns(rows, of_raw, 1, n, to)                             \
						: raw_columns(rows, of_raw, 2, n, to);                            \
		rest.data = (const uint8_t *)rows->data + done * rows->bytes;                                     \
		return done + (done < n ? columns(&rest, of_vectors, n - done, to + done) : 0);                   \
	}                                                                                                         \
	static int64_t name##_across(const struct fold_rows *rows, int64_t n, int32_t *to)                        \
	{                                                                                                         \
		return across(rows, of_vectors, of_raw, start, n, to);                                            \
	}                                                                                                         \
	static int64_t name##_each(const struct fold_pieces *pieces, int64_t n, int32_t *to)                      \
	{                                                                                                         \
		return across_each(pieces, of_vectors, of_raw, start, n, to);                                     \
	}                                                                                                         \
	static void name##_pool(const struct fold_pool *of)                                                       \
	{                                                                                                         \
		pool(of, &(struct fold_by){of_vectors, of_raw, start});                                           \
	}
#include "daemon/device/fixed/rows/folds.def"
#undef FOLD

const struct folds VECTOR_NAME(folds) = {{
#define FOLD(name, NAME, start, of_vectors, of_raw, of_two)                                                       \
	{name##_columns, name##_across, name##_each, name##_pool},
#include "daemon/device/fixed/rows/folds.def"
#undef FOLD
}};
