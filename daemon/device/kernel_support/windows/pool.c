/* What pools share: their check, and the folding of rows. */
#include "daemon/device/kernel_support/windows/pool.h"

#include <string.h>

#include "daemon/device/fixed/container.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/steps.h"
#include "daemon/device/least.h"
#include "daemon/device/memory/blocks.h"

static int read_window(const struct kernel_call *call, struct window *window, struct npumem_error *error)
{
	int64_t kernel_h = kernel_param(call, NPUMEM_PARAM_KERNEL, 0, 1);
	int64_t kernel_w = kernel_param(call, NPUMEM_PARAM_KERNEL, 1, 1);
	return window_read(call, &operands_get(call, POOL_IN)->shape, kernel_h, kernel_w, window, error);
}

int pool_check(const struct kernel_call *call, struct npumem_error *error)
{
	const struct npumem_dims *in = &operands_get(call, POOL_IN)->shape;
	struct window window;
	int status = operands_check_fixed(call, POOL_IN, error);
	if (!status)
		status = operands_check_same_dtype(call, POOL_OUT, POOL_IN, error);
	if (!status)
		status = read_window(call, &window, error);
	/* A wider one could have all of in between two taps. */
	if (!status)
		status =
			operands_check_param(call, NPUMEM_PARAM_DILATION, "h", window.h.dilation, 1, in->h, error);
	if (!status)
		status =
			operands_check_param(call, NPUMEM_PARAM_DILATION, "w", window.w.dilation, 1, in->w, error);
	if (status)
		return status;
	struct npumem_dims want = {in->n, in->c, window.h.out, window.w.out};
	return operands_check_shape(call, POOL_OUT, &want, "in and the window give", error);
}

enum { GLOBAL_BLOCK = 256 };

/* Folds along a row: with a large stride fold_pool makes a window at each column. */
static double folds_across(const struct window_axis *w)
{
	return (double)w->kernel * (w->stride > 2 ? (double)(w->out - 1) * (double)w->stride + 1 : (double)w->out);
}

/* Ordinary windows are no padding for the most part, and a row of outputs is no more than some pieces of work. */
static bool is_ordinary(const struct kernel_call *call, const struct window *window)
{
	enum { PIECES = 8, ROWS = 8 };
	const struct window_axis *h = &window->h, *w = &window->w;
	if (w->before + w->after > w->in || h->before + h->after > h->in + ROWS ||
	    h->kernel > h->in + h->before + h->after || h->kernel * w->kernel > FOLD_TERMS_MAX)
		return false;
	return (double)(h->kernel * w->in) + folds_across(w) <= (double)(PIECES * kernel_piece(call));
}

/* Windows that are whole features, whose single outputs lie one behind the other. */
static bool is_global(const struct kernel_call *call, const struct window *window)
{
	const struct window_axis *h = &window->h, *w = &window->w;
	return operands_get(call, POOL_OUT)->data && h->out * w->out == 1 && h->kernel == h->in &&
	       w->kernel == w->in && h->before + w->before == 0 && h->dilation * w->dilation == 1;
}

/* Where a row is a fraction of a vector, and its transpose some vectors, which may take as long as a piece of
 * work. A column of width 1 is a row as it lies. */
enum { SHORT = 16, TIMES = 4, TURNED_BYTES = 1 << 18 };

static bool is_narrow(const struct kernel_call *call, const struct window *window)
{
	const struct window_axis *h = &window->h, *w = &window->w;
	int64_t bytes = npumem_dtype_bytes(operands_get(call, POOL_IN)->dtype);
	if (w->in == 1 && w->out == 1)
		return true;
	return w->in <= SHORT && w->out <= SHORT && h->out / TIMES >= w->out && h->in / TIMES >= w->in &&
	       h->in * w->in * bytes <= TURNED_BYTES && h->out * w->out * bytes <= TURNED_BYTES;
}

struct window pool_window(const struct kernel_call *call)
{
	struct window window;
	read_window(call, &window, NULL);
	struct window turned = {.h = window.w, .w = window.h};
	return is_narrow(call, &window) && is_ordinary(call, &turned) && !is_global(call, &window) ? turned
												   : window;
}

/* One side of the other's transpose, in scratch. */
static int64_t turned_bytes(const struct kernel_call *call, unsigned role)
{
	const struct npumem_dims *shape = &operands_get(call, role)->shape;
	return shape->h * shape->w * npumem_dtype_bytes(operands_get(call, role)->dtype);
}

static bool is_turned(const struct kernel_call *call, const struct window *window)
{
	const struct npumem_dims *in = &operands_get(call, POOL_IN)->shape,
				 *out = &operands_get(call, POOL_OUT)->shape;
	return (in->w > 1 || out->w > 1) && window->w.in == in->h && window->h.in == in->w && in->h != in->w;
}

/* Whether a window's rows lie so far apart that they are copied one by one. */
static bool is_sparse(const struct kernel_call *call, const struct window *window)
{
	const struct window_axis *h = &window->h;
	return ((h->kernel - 1) * h->dilation + 1) * window->w.in > kernel_piece(call) && h->dilation > 1;
}

/* Rows of outputs that are made at once: about a piece of work. */
static int64_t rows_of(const struct kernel_call *call, const struct window *window)
{
	const struct window_axis *h = &window->h, *w = &window->w;
	int64_t down = h->kernel > h->stride ? h->kernel : h->stride;
	int64_t rows = kernel_piece(call) / (down * w->in + (int64_t)folds_across(w) + FOLD_PAST);
	return is_sparse(call, window) || rows < 1 ? 1 : least(rows, h->out);
}

/* Rows of the input that so many rows of outputs see. */
static int64_t rows_under(const struct fold_pool *p, int64_t rows)
{
	return (rows - 1) * p->row_step + (p->taps_down - 1) * p->dilation_down + 1;
}

static void *take(const struct kernel_call *call, size_t *taken, int64_t bytes)
{
	enum { ALIGN = 64 };
	uint8_t *at = call->scratch;
	at = at ? at + *taken : NULL;
	*taken += (size_t)(bytes + ALIGN - 1) / ALIGN * ALIGN;
	return at;
}

/* What all rows of ordinary windows share, in scratch memory, whose size it returns. */
static size_t lay_out(struct pool *pool, const struct kernel_call *call, unsigned width)
{
	const struct window *window = &pool->window;
	const struct window_axis *h = &window->h, *w = &window->w;
	const int64_t rows = rows_of(call, window);
	size_t taken = 0;
	pool->rows = (struct fold_pool){
		.bytes = npumem_dtype_bytes(operands_get(call, POOL_IN)->dtype),
		.width = width,
		.wide = w->in,
		.row_step = h->stride,
		.taps_down = h->kernel,
		.dilation_down = is_sparse(call, window) ? 1 : h->dilation,
		.taps = w->kernel,
		.stride = w->stride,
		.dilation = w->dilation,
		.before = w->before,
		.after = w->after,
		.n_rows = 1,
		.n = w->out,
	};
	struct fold_pool *p = &pool->rows;
	pool->copied = take(call, &taken, (rows_under(p, rows) * w->in + FOLD_PAST) * p->bytes);
	p->columns = take(call, &taken, (rows * fold_pool_pitch(p) + FOLD_PAST) * width);
	p->to = take(call, &taken, (rows * w->out + FOLD_PAST + GLOBAL_BLOCK) * width);
	p->in = pool->copied;
	pool->turned = is_turned(call, window);
	if (pool->turned) {
		pool->turned_in = take(call, &taken, turned_bytes(call, POOL_IN));
		pool->turned_out = take(call, &taken, turned_bytes(call, POOL_OUT));
	}
	return taken;
}

size_t pool_scratch_bytes(const struct kernel_call *call)
{
	struct pool pool = {.window = pool_window(call)};
	const struct window_axis *w = &pool.window.w;
	if (!is_ordinary(call, &pool.window))
		return (size_t)(w->in + kernel_stretch(call, w->out)) * sizeof(int64_t);
	return lay_out(&pool, call, sizeof(int32_t));
}

bool pool_is_wide(const struct kernel_call *call)
{
	const struct window window = pool_window(call);
	return !is_ordinary(call, &window);
}

/* Of all features: one side of each becomes the other's transpose. */
static double turn_steps(const struct kernel_call *call)
{
	enum { ELEMENT = 8 };
	return ELEMENT *
	       (steps_elements(operands_get(call, POOL_IN)) + steps_elements(operands_get(call, POOL_OUT)));
}

int64_t pool_steps(const struct kernel_call *call, int64_t apart)
{
	enum { TAP = 4, ABREAST = 4, COPIED = 32 }; /* by itself; that vectors fold, and copy, in a step */
	const struct window window = pool_window(call);
	const struct kernel_operand *out = operands_get(call, POOL_OUT);
	const struct window_axis *h = &window.h, *w = &window.w;
	double rows = (double)(out->shape.n * out->shape.c) * (double)h->out;
	double row = STEPS_ROW + (double)apart * STEPS_DIVISION + (double)w->out * steps_per_element(call);
	double fold = call->isa == ISA_SCALAR ? TAP : 1.0 / ABREAST;
	if (!is_ordinary(call, &window))
		row += ((double)(h->kernel < h->in ? h->kernel : h->in) * (double)w->in +
			(double)w->kernel * (double)w->out + (double)w->in) *
		       TAP;
	else
		row += ((double)h->kernel * (double)(w->before + w->in + w->after) + folds_across(w)) * fold +
		       (double)h->stride * (double)w->in / COPIED;
	return steps_whole(rows * row + (is_turned(call, &window) ? turn_steps(call) : 0));
}

/* Of what a row is folded into: maxima are elements, and so are sums of few bytes in words. */
static unsigned width_of(const struct pool *pool)
{
	const struct window_axis *h = &pool->window.h, *w = &pool->window.w;
	bool holds = pool->fold != FOLD_SUM || (pool->bytes == 1 && h->kernel * w->kernel <= UINT8_MAX);
	if (pool->global || !holds)
		return sizeof(int32_t);
	return pool->fold == FOLD_SUM ? sizeof(int16_t) : pool->bytes;
}

void pool_begin(struct pool *pool, const struct kernel_call *call, enum fold fold)
{
	*pool = (struct pool){
		.call = call, .window = pool_window(call), .fold = fold, .y = -1, .rows = {.n_rows = 1}};
	const struct window_axis *w = &pool->window.w;
	pool->bytes = npumem_dtype_bytes(operands_get(call, POOL_IN)->dtype);
	if (!is_ordinary(call, &pool->window)) {
		pool->columns = call->scratch;
		pool->values = pool->columns + w->in;
		return;
	}
	pool->global = is_global(call, &pool->window);
	lay_out(pool, call, width_of(pool));
}

/* h rows of w elements become w rows of h. */
static void turn(const struct pool *pool, uint8_t *to, const uint8_t *from, int64_t h, int64_t w)
{
	const struct blocks blocks = {
		.bytes = pool->bytes,
		.n = {h, w},
		.to_pitch = {pool->bytes, h * pool->bytes},
		.from_pitch = {w * pool->bytes, pool->bytes},
	};
	blocks_paths(pool->call->isa)->transpose(to, from, &blocks);
}

/* The rows of the input that the windows see; of padding, which one row of windows leaves out, elements that
 * change nothing. */
static void copy_rows(struct pool *pool)
{
	const struct window_axis *h = &pool->window.h;
	struct fold_pool *p = &pool->rows;
	int64_t tap = 0, end = h->kernel;
	if (p->n_rows == 1)
		window_taps(h, pool->y, &tap, &end);
	p->taps_down = end - tap;
	int64_t n = rows_under(p, p->n_rows), step = h->dilation / p->dilation_down;
	int64_t wide = pool->window.w.in, row = wide * pool->bytes, y = window_at(h, pool->y, tap);
	int32_t start = fold_start_in(fold_start(pool->fold), pool->bytes);
	for (int64_t i = 0, count; i < n; i += count, y += count * step) {
		uint8_t *to = pool->copied + i * row;
		bool is_in = y >= 0 && y < h->in;
		count = step == 1 && is_in ? least(n - i, h->in - y) : 1;
		if (is_in)
			memcpy(to, pool->in + y * row, (size_t)(count * row));
		else if (pool->bytes == 1)
			memset(to, start, (size_t)row);
		else
			for (int64_t x = 0; x < wide; x++)
				((int16_t *)to)[x] = (int16_t)start;
	}
}

static int64_t of_two(enum fold fold, int64_t a, int64_t b)
{
	return fold == FOLD_SUM ? a + b : a > b ? a : b;
}

/* Each false where it is no longer wanted. */

static bool fold_row_down(struct pool *pool)
{
	const struct window_axis *h = &pool->window.h, *w = &pool->window.w;
	int64_t start = fold_start(pool->fold), tap, end;
	for (int64_t x = 0; x < w->in; x++) {
		pool->columns[x] = start;
		if (!kernel_look(pool->call, 1, &pool->looked))
			return false;
	}
	window_taps(h, pool->y, &tap, &end);
	for (; tap < end; tap++) {
		const uint8_t *row = pool->in + window_at(h, pool->y, tap) * w->in * pool->bytes;
		for (int64_t x = 0; x < w->in; x++) {
			pool->columns[x] =
				of_two(pool->fold, pool->columns[x], container_get(row, pool->bytes, x));
			if (!kernel_look(pool->call, 1, &pool->looked))
				return false;
		}
	}
	return true;
}

static bool fold_row_across(struct pool *pool)
{
	const struct window_axis *w = &pool->window.w;
	int64_t start = fold_start(pool->fold), tap, end;
	for (int64_t x = 0; x < pool->n_values; x++) {
		pool->values[x] = start;
		window_taps(w, pool->x + x, &tap, &end);
		for (; tap < end; tap++) {
			int64_t value = pool->columns[window_at(w, pool->x + x, tap)];
			pool->values[x] = of_two(pool->fold, pool->values[x], value);
			if (!kernel_look(pool->call, 1, &pool->looked))
				return false;
		}
	}
	return true;
}

static bool next_row(struct pool *pool, const struct npumem_dims *out)
{
	pool->y += pool->rows.n_rows;
	if (pool->y < pool->window.h.out)
		return true;
	pool->y = 0;
	if (++pool->c < out->c)
		return true;
	pool->c = 0;
	return ++pool->n < out->n;
}

/* Where it is not ordinary a row may be as long as an NPU: it comes in stretches. */
static bool next_stretch(struct pool *pool, const struct npumem_dims *out)
{
	int64_t wide = pool->window.w.out;
	pool->x += pool->n_values;
	if (pool->y < 0 || pool->rows.to || pool->x == wide) {
		pool->x = 0;
		if (!next_row(pool, out))
			return false;
	}
	pool->rows.n_rows =
		pool->rows.to ? least(pool->window.h.out - pool->y, rows_of(pool->call, &pool->window)) : 1;
	pool->n_values = pool->rows.to ? pool->rows.n_rows * wide : kernel_stretch(pool->call, wide - pool->x);
	return true;
}

static bool fold_features(struct pool *pool)
{
	const struct kernel_operand *in = operands_get(pool->call, POOL_IN),
				    *out = operands_get(pool->call, POOL_OUT);
	int64_t length = in->shape.h * in->shape.w, left = in->shape.n * in->shape.c - pool->feature;
	int64_t most = kernel_piece(pool->call) / length + 1;
	most = most < GLOBAL_BLOCK ? most : GLOBAL_BLOCK;
	pool->n_values = left < most ? left : most;
	pool->out = (uint8_t *)out->data + pool->feature * pool->bytes;
	const void *features[GLOBAL_BLOCK];
	for (int64_t i = 0; i < pool->n_values; i++) {
		features[i] = kernel_feature(in, pool->n, pool->c);
		if (++pool->c == in->shape.c) {
			pool->c = 0;
			pool->n++;
		}
	}
	const struct fold_pieces pieces = {features, pool->bytes, pool->n_values};
	fold_each(pool->fold, pool->call->isa, &pieces, length, pool->rows.to);
	pool->y = 0;
	return pool->n_values > 0;
}

/* The row's feature, as it lies or turned. */
static void find_row(struct pool *pool, const struct kernel_operand *out)
{
	const struct window_axis *h = &pool->window.h, *w = &pool->window.w;
	pool->in = kernel_feature(operands_get(pool->call, POOL_IN), pool->n, pool->c);
	pool->out = pool->turned ? pool->turned_out : kernel_feature(out, pool->n, pool->c);
	if (pool->turned && pool->y == 0)
		turn(pool, pool->turned_in, pool->in, w->in, h->in);
	if (pool->turned)
		pool->in = pool->turned_in;
	pool->out += (pool->y * w->out + pool->x) * pool->bytes;
}

/* What the rows of a feature were written to. */
static void end_rows(const struct pool *pool, const struct kernel_operand *out)
{
	const struct window_axis *h = &pool->window.h, *w = &pool->window.w;
	if (pool->turned && pool->y + pool->rows.n_rows == h->out)
		turn(pool, kernel_feature(out, pool->n, pool->c), pool->turned_out, h->out, w->out);
}

bool pool_next(struct pool *pool)
{
	const struct kernel_operand *out = operands_get(pool->call, POOL_OUT);
	if (pool->y >= 0)
		end_rows(pool, out);
	if (pool->y >= 0 && !kernel_step_rarely(pool->call, pool->n_values, &pool->pending))
		return false;
	pool->feature += pool->n_values;
	if (pool->global && fold_features(pool))
		return true;
	if (pool->global || !next_stretch(pool, &out->shape)) {
		kernel_step(pool->call, pool->pending);
		return false;
	}
	find_row(pool, out);
	if (!pool->rows.to)
		return (pool->x > 0 || fold_row_down(pool)) && fold_row_across(pool);
	copy_rows(pool);
	fold_pool(pool->fold, pool->call->isa, &pool->rows);
	return true;
}
