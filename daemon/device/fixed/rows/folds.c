/* The scalar folds, which define what the others compute. */
#include "daemon/device/fixed/rows/folds.h"

#include "daemon/device/implementations.h"

static int32_t row_at(const struct fold_rows *rows, int64_t row, int64_t i)
{
	i += row * rows->row;
	return rows->bytes == 1 ? ((const int8_t *)rows->data)[i] : ((const int16_t *)rows->data)[i];
}

static int32_t narrow_at(const void *values, unsigned bytes, int64_t i)
{
	return bytes == 1 ? ((const int8_t *)values)[i] : ((const int16_t *)values)[i];
}

static void narrow_put(void *values, unsigned bytes, int64_t i, int32_t x)
{
	if (bytes == 1)
		((int8_t *)values)[i] = (int8_t)x;
	else
		((int16_t *)values)[i] = (int16_t)x;
}

#define FOLD(name, NAME, start, of_vectors, of_raw, of_two)                                                       \
	static int32_t name##_of_two(int32_t a, int32_t b)                                                        \
	{                                                                                                         \
		return of_two;                                                                                    \
	}                                                                                                         \
	static int64_t name##_columns(const struct fold_rows *rows, int64_t n, int32_t *to)                       \
	{                                                                                                         \
		for (int64_t i = 0; i < n; i++) {                                                                 \
			to[i] = row_at(rows, 0, i);                                                               \
			for (int64_t r = 1; r < rows->n_rows; r++)                                                \
				to[i] = name##_of_two(to[i], row_at(rows, r, i));                                 \
		}                                                                                                 \
		return n;                                                                                         \
	}                                                                                                         \
	static int64_t name##_windows(const int32_t *columns, const struct fold_window *window, int64_t n,        \
				      int32_t *to)                                                                \
	{                                                                                                         \
		for (int64_t i = 0; i < n; i++) {                                                                 \
			const int32_t *at = columns + i * window->stride;                                         \
			to[i] = at[0];                                                                            \
			for (int64_t t = 1; t < window->taps; t++)                                                \
				to[i] = name##_of_two(to[i], at[t * window->dilation]);                           \
		}                                                                                                 \
		return n;                                                                                         \
	}                                                                                                         \
	static int64_t name##_across(const struct fold_rows *rows, int64_t n, int32_t *to)                        \
	{                                                                                                         \
		*to = row_at(rows, 0, 0);                                                                         \
		for (int64_t i = 1; i < n; i++)                                                                   \
			*to = name##_of_two(*to, row_at(rows, 0, i));                                             \
		return n;                                                                                         \
	}                                                                                                         \
	static int64_t name##_narrow_columns(const struct fold_rows *rows, unsigned bytes, int64_t n, void *to)   \
	{                                                                                                         \
		for (int64_t i = 0; i < n; i++) {                                                                 \
			int32_t x = row_at(rows, 0, i);                                                           \
			for (int64_t r = 1; r < rows->n_rows; r++)                                                \
				x = name##_of_two(x, row_at(rows, r, i));                                         \
			narrow_put(to, bytes, i, x);                                                              \
		}                                                                                                 \
		return n;                                                                                         \
	}                                                                                                         \
	static int64_t name##_narrow_windows(const void *columns, unsigned bytes,                                 \
					     const struct fold_window *window, int64_t n, void *to)               \
	{                                                                                                         \
		for (int64_t i = 0; i < n; i++) {                                                                 \
			int64_t at = i * window->stride;                                                          \
			int32_t x = narrow_at(columns, bytes, at);                                                \
			for (int64_t t = 1; t < window->taps; t++)                                                \
				x = name##_of_two(x, narrow_at(columns, bytes, at + t * window->dilation));       \
			narrow_put(to, bytes, i, x);                                                              \
		}                                                                                                 \
		return n;                                                                                         \
	}                                                                                                         \
	static int64_t name##_each(const struct fold_pieces *pieces, int64_t n, int32_t *to)                      \
	{                                                                                                         \
		for (int64_t i = 0; i < pieces->n_pieces; i++) {                                                  \
			const struct fold_rows row = {pieces->data[i], pieces->bytes, 0, 1};                      \
			name##_across(&row, n, to + i);                                                           \
		}                                                                                                 \
		return n;                                                                                         \
	}
#include "daemon/device/fixed/rows/folds.def"
#undef FOLD

const struct folds folds__scalar = {{
#define FOLD(name, NAME, start, of_vectors, of_raw, of_two)                                                       \
	{name##_columns, name##_windows, name##_across, name##_each, name##_narrow_columns, name##_narrow_windows},
#include "daemon/device/fixed/rows/folds.def"
#undef FOLD
}};

static int32_t (*const of_two[FOLD_N])(int32_t, int32_t) = {
#define FOLD(name, NAME, start, of_vectors, of_raw, of_two) name##_of_two,
#include "daemon/device/fixed/rows/folds.def"
#undef FOLD
};

int32_t fold_start(enum fold fold)
{
	static const int32_t starts[FOLD_N] = {
#define FOLD(name, NAME, start, of_vectors, of_raw, of_two) start,
#include "daemon/device/fixed/rows/folds.def"
#undef FOLD
	};
	return starts[fold];
}

static struct fold_rows after(const struct fold_rows *rows, int64_t n)
{
	struct fold_rows rest = *rows;
	rest.data = (const uint8_t *)rows->data + n * rows->bytes;
	return rest;
}

/* What the function of an instruction set leaves is done by the scalar one. */

void fold_columns(enum fold fold, enum isa isa, const struct fold_rows *rows, int64_t n, int32_t *to)
{
	int64_t done = implementations[isa].folds->of[fold].columns(rows, n, to);
	struct fold_rows rest = after(rows, done);
	if (done < n)
		folds__scalar.of[fold].columns(&rest, n - done, to + done);
}

void fold_windows(enum fold fold, enum isa isa, const int32_t *columns, const struct fold_window *window,
		  int64_t n, int32_t *to)
{
	int64_t done = implementations[isa].folds->of[fold].windows(columns, window, n, to);
	if (done < n)
		folds__scalar.of[fold].windows(columns + done * window->stride, window, n - done, to + done);
}

void fold_narrow_columns(enum fold fold, enum isa isa, const struct fold_rows *rows, unsigned bytes, int64_t n,
			 void *to)
{
	int64_t done = implementations[isa].folds->of[fold].narrow_columns(rows, bytes, n, to);
	struct fold_rows rest = after(rows, done);
	if (done < n)
		folds__scalar.of[fold].narrow_columns(&rest, bytes, n - done, (uint8_t *)to + done * bytes);
}

void fold_narrow_windows(enum fold fold, enum isa isa, const void *columns, unsigned bytes,
			 const struct fold_window *window, int64_t n, void *to)
{
	int64_t done = implementations[isa].folds->of[fold].narrow_windows(columns, bytes, window, n, to);
	if (done < n)
		folds__scalar.of[fold].narrow_windows((const uint8_t *)columns + done * window->stride * bytes,
						      bytes, window, n - done, (uint8_t *)to + done * bytes);
}

int32_t fold_across(enum fold fold, enum isa isa, const struct fold_rows *rows, int64_t n)
{
	int32_t folded, last;
	int64_t done = implementations[isa].folds->of[fold].across(rows, n, &folded);
	if (done == n)
		return folded;
	struct fold_rows rest = after(rows, done);
	folds__scalar.of[fold].across(&rest, n - done, &last);
	return of_two[fold](folded, last);
}

void fold_each(enum fold fold, enum isa isa, const struct fold_pieces *pieces, int64_t n, int32_t *to)
{
	int64_t done = implementations[isa].folds->of[fold].each(pieces, n, to);
	for (int64_t i = 0; i < pieces->n_pieces && done < n; i++) {
		const struct fold_rows row = {pieces->data[i], pieces->bytes, 0, 1}, rest = after(&row, done);
		int32_t last;
		folds__scalar.of[fold].across(&rest, n - done, &last);
		to[i] = of_two[fold](to[i], last);
	}
}
