/* The scalar folds, which define what the others compute. */
#include "daemon/device/fixed/rows/folds.h"

#include "daemon/device/implementations.h"

static int32_t row_at(const struct fold_rows *rows, int64_t row, int64_t i)
{
	i += row * rows->row;
	return rows->bytes == 1 ? ((const int8_t *)rows->data)[i] : ((const int16_t *)rows->data)[i];
}

static int32_t result_at(const void *results, unsigned bytes, int64_t i)
{
	const struct fold_rows rows = {results, bytes, 0, 1};
	return bytes == 4 ? ((const int32_t *)results)[i] : row_at(&rows, 0, i);
}

static void result_put(void *results, unsigned bytes, int64_t i, int32_t x)
{
	if (bytes == 1)
		((int8_t *)results)[i] = (int8_t)x;
	else if (bytes == 2)
		((int16_t *)results)[i] = (int16_t)x;
	else
		((int32_t *)results)[i] = x;
}

typedef int32_t of_two_function(int32_t a, int32_t b);

static void pool_columns(const struct fold_pool *p, of_two_function *of_two, int32_t start, int64_t row)
{
	const struct fold_rows rows = {p->in, p->bytes, p->wide, p->taps_down};
	for (int64_t i = 0; i < p->before + p->wide + p->after; i++) {
		int32_t x = start;
		for (int64_t r = 0; r < p->taps_down && i >= p->before && i < p->before + p->wide; r++)
			x = of_two(x, row_at(&rows, row * p->row_step + r * p->dilation_down, i - p->before));
		result_put(p->columns, p->width, i, x);
	}
}

static void pool_rows(const struct fold_pool *p, of_two_function *of_two, int32_t start)
{
	start = fold_start_in(start, p->width);
	for (int64_t row = 0; row < p->n_rows; row++) {
		pool_columns(p, of_two, start, row);
		for (int64_t i = 0; i < p->n; i++) {
			int32_t x = start;
			for (int64_t t = 0; t < p->taps; t++)
				x = of_two(x, result_at(p->columns, p->width, i * p->stride + t * p->dilation));
			result_put(p->to, p->width, row * p->n + i, x);
		}
	}
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
	static int64_t name##_across(const struct fold_rows *rows, int64_t n, int32_t *to)                        \
	{                                                                                                         \
		*to = row_at(rows, 0, 0);                                                                         \
		for (int64_t i = 1; i < n; i++)                                                                   \
			*to = name##_of_two(*to, row_at(rows, 0, i));                                             \
		return n;                                                                                         \
	}                                                                                                         \
	static void name##_pool(const struct fold_pool *pool)                                                     \
	{                                                                                                         \
		pool_rows(pool, name##_of_two, start);                                                            \
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
	{name##_columns, name##_across, name##_each, name##_pool},
#include "daemon/device/fixed/rows/folds.def"
#undef FOLD
}};

static of_two_function *const of_two[FOLD_N] = {
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

void fold_pool(enum fold fold, enum isa isa, const struct fold_pool *pool)
{
	implementations[isa].folds->of[fold].pool(pool);
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
