/* The scalar folds, which define what the others compute. */
#include "daemon/device/fixed/rows/folds.h"

#include "daemon/device/fixed/container.h"
#include "daemon/device/implementations.h"

#define FOLD(name, NAME, start, of_vectors, of_raw, of_two)                                                       \
	static int64_t name##_of_two(int64_t a, int64_t b)                                                        \
	{                                                                                                         \
		return of_two;                                                                                    \
	}                                                                                                         \
	static int64_t name##_every(const void *data, unsigned bytes, int64_t at, int64_t apart, int64_t n)       \
	{                                                                                                         \
		int64_t x = container_get(data, bytes, at);                                                       \
		for (int64_t k = 1; k < n; k++)                                                                   \
			x = name##_of_two(x, container_get(data, bytes, at + k * apart));                         \
		return x;                                                                                         \
	}                                                                                                         \
	static int64_t name##_columns(const struct fold_rows *rows, unsigned bytes, int64_t n, void *to)          \
	{                                                                                                         \
		for (int64_t i = 0; i < n; i++)                                                                   \
			container_put(to, bytes, i,                                                               \
				      name##_every(rows->data, rows->bytes, i, rows->row, rows->n_rows));         \
		return n;                                                                                         \
	}                                                                                                         \
	static int64_t name##_windows(const void *columns, unsigned bytes, const struct fold_window *window,      \
				      int64_t n, void *to)                                                        \
	{                                                                                                         \
		for (int64_t i = 0; i < n; i++)                                                                   \
			container_put(to, bytes, i,                                                               \
				      name##_every(columns, bytes, i * window->stride, window->dilation,          \
						   window->taps));                                                \
		return n;                                                                                         \
	}                                                                                                         \
	static int64_t name##_across(const struct fold_rows *rows, int64_t n, int32_t *to)                        \
	{                                                                                                         \
		*to = (int32_t)name##_every(rows->data, rows->bytes, 0, 1, n);                                    \
		return n;                                                                                         \
	}                                                                                                         \
	static int64_t name##_each(const struct fold_pieces *pieces, int64_t n, int32_t *to)                      \
	{                                                                                                         \
		for (int64_t i = 0; i < pieces->n_pieces; i++)                                                    \
			to[i] = (int32_t)name##_every(pieces->data[i], pieces->bytes, 0, 1, n);                   \
		return n;                                                                                         \
	}
#include "daemon/device/fixed/rows/folds.def"
#undef FOLD

const struct folds folds__scalar = {{
#define FOLD(name, NAME, start, of_vectors, of_raw, of_two)                                                       \
	{name##_columns, name##_windows, name##_across, name##_each},
#include "daemon/device/fixed/rows/folds.def"
#undef FOLD
}};

static int64_t (*const of_two[FOLD_N])(int64_t, int64_t) = {
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

/* What the function of an instruction set leaves is done by the scalar one. */

void fold_columns(enum fold fold, enum isa isa, const struct fold_rows *rows, unsigned bytes, int64_t n, void *to)
{
	int64_t done = implementations[isa].folds->of[fold].columns(rows, bytes, n, to);
	struct fold_rows rest = *rows;
	rest.data = (const uint8_t *)rows->data + done * rows->bytes;
	if (done < n)
		folds__scalar.of[fold].columns(&rest, bytes, n - done, (uint8_t *)to + done * bytes);
}

void fold_windows(enum fold fold, enum isa isa, const void *columns, unsigned bytes,
		  const struct fold_window *window, int64_t n, void *to)
{
	int64_t done = implementations[isa].folds->of[fold].windows(columns, bytes, window, n, to);
	if (done < n)
		folds__scalar.of[fold].windows((const uint8_t *)columns + done * window->stride * bytes, bytes,
					       window, n - done, (uint8_t *)to + done * bytes);
}

int32_t fold_across(enum fold fold, enum isa isa, const struct fold_rows *rows, int64_t n)
{
	int32_t folded, last;
	int64_t done = implementations[isa].folds->of[fold].across(rows, n, &folded);
	if (done == n)
		return folded;
	struct fold_rows rest = *rows;
	rest.data = (const uint8_t *)rows->data + done * rows->bytes;
	folds__scalar.of[fold].across(&rest, n - done, &last);
	return (int32_t)of_two[fold](folded, last);
}

void fold_each(enum fold fold, enum isa isa, const struct fold_pieces *pieces, int64_t n, int32_t *to)
{
	int64_t done = implementations[isa].folds->of[fold].each(pieces, n, to);
	for (int64_t i = 0; i < pieces->n_pieces && done < n; i++) {
		const uint8_t *data = pieces->data[i];
		const struct fold_rows rest = {data + done * pieces->bytes, pieces->bytes, 0, 1};
		int32_t last;
		folds__scalar.of[fold].across(&rest, n - done, &last);
		to[i] = (int32_t)of_two[fold](to[i], last);
	}
}
