/* Mean over the points of each window on the input, and on the padding that count_padding= says, by the
 * reference's truncated reciprocal or, with exact=1, rounded once. The sum is held by the accumulator; its product
 * with the reciprocal is exact, so that large windows do not overflow as the reference's 32 bits do. */
#include <inttypes.h>

#include "daemon/device/fixed/accumulator.h"
#include "daemon/device/fixed/mean.h"
#include "daemon/device/fixed/rows/rows.h"
#include "daemon/device/fixed/container.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/windows/pool.h"

static bool is_exact(const struct kernel_call *call)
{
	return kernel_param(call, NPUMEM_PARAM_EXACT, 0, 0) != 0;
}

/* The same windows over an input that has the counted padding. */
static struct window_axis counted(const struct window_axis *axis)
{
	struct window_axis wide = *axis;
	wide.in += axis->counted_before + axis->counted_after;
	wide.before -= axis->counted_before;
	return wide;
}

static int64_t most_points(const struct window_axis *axis)
{
	int64_t in = counted(axis).in;
	return axis->kernel < in ? axis->kernel : in;
}

static int check_counted(const struct kernel_call *call, struct npumem_error *error)
{
	static const char *const sides[] = {"top", "bottom", "left", "right"};
	int status = 0;
	for (unsigned i = 0; i < 4 && !status; i++)
		status = operands_check_param(call, NPUMEM_PARAM_COUNT_PADDING, sides[i],
					      kernel_param(call, NPUMEM_PARAM_COUNT_PADDING, i, 0), 0,
					      kernel_param(call, NPUMEM_PARAM_PADDING, i, 0), error);
	if (status)
		return status;
	const struct window window = pool_window(call);
	int64_t points = most_points(&window.h) * most_points(&window.w);
	return points <= MEAN_MAX ? 0
				  : npumem_error_set(error, NPUMEM_INVALID,
						     "%s: a window counts %" PRId64 " points, more than %" PRId64,
						     call->row->name, points, MEAN_MAX);
}

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	int status = operands_check_param(call, NPUMEM_PARAM_EXACT, "",
					  kernel_param(call, NPUMEM_PARAM_EXACT, 0, 0), 0, 1, error);
	if (!status)
		status = pool_check(call, error);
	return status ? status : check_counted(call, error);
}

/* Means one by one; `mean` is that of the last one. */
struct single {
	struct kernel_call *call;
	struct requantize to;
	struct mean mean;
	int64_t in_frac_bits, out_frac_bits;
	bool exact;
};

static void single_init(struct single *single, struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, POOL_IN), *out = operands_get(call, POOL_OUT);
	*single = (struct single){.call = call,
				  .in_frac_bits = in->frac_bits,
				  .out_frac_bits = out->frac_bits,
				  .exact = is_exact(call)};
	requantize_init(&single->to, out->dtype, 0, call->rounding);
}

static int64_t mean_of(struct single *s, int64_t sum)
{
	const struct requantize *to = &s->to;
	struct kernel_counts *counts = &s->call->counts;
	sum = accumulator_total(sum, 0, 0, to->bytes == 1 ? 32 : 40, &counts->wrapped);
	return (s->exact ? mean_exact : mean_truncated)(&s->mean, sum, s->in_frac_bits, s->out_frac_bits,
							to->rounding, to->low, to->high, &counts->saturated);
}

/* Values [x, end) of windows, each of which counts `rows` rows of points; along a row those of `w`, from output
 * `out` on. */
static void means_one_by_one(struct single *single, const struct pool *pool, const struct window_axis *w,
			     int64_t rows, int64_t x, int64_t end, int64_t out)
{
	for (; x < end; x++, out++) {
		const struct row_source folded = pool_source(pool);
		int64_t tap, past, sum = pool->rows.to ? row_get(&folded, x) : pool->values[x];
		window_taps(w, out, &tap, &past);
		if (single->mean.n != rows * (past - tap))
			mean_init(&single->mean, rows * (past - tap));
		container_put(pool->out, pool->bytes, x, mean_of(single, sum));
	}
}

/* Outputs whose windows have no padding to their sides, but what is counted, share a reciprocal, with those of
 * other rows too. */
struct inside {
	int64_t first, end;   /* outputs of a row */
	int64_t below, above; /* rows that have no padding but what is counted: [above, below) */
	int64_t rows;	      /* of points in a window */
	struct row row;
};

/* Outputs of windows without padding but what is counted. */
static void whole_windows(const struct window_axis *counted, int64_t *first, int64_t *end)
{
	int64_t span = counted->in + counted->before - (counted->kernel - 1) * counted->dilation - 1;
	*first = (counted->before + counted->stride - 1) / counted->stride;
	*end = span < 0 ? 0 : span / counted->stride + 1;
	if (*first >= *end)
		*first = *end = 0;
}

static void inside_init(struct inside *inside, const struct pool *pool)
{
	const struct window_axis h = counted(&pool->window.h), w = counted(&pool->window.w);
	*inside = (struct inside){.rows = 0};
	whole_windows(&h, &inside->above, &inside->below);
	if (pool->rows.to)
		whole_windows(&w, &inside->first, &inside->end);
}

static void set_rows(struct inside *inside, const struct kernel_call *call, const struct pool *pool, int64_t rows)
{
	const struct kernel_operand *in = operands_get(call, POOL_IN), *out = operands_get(call, POOL_OUT);
	int64_t points = rows * pool->window.w.kernel;
	inside->rows = rows;
	inside->row = (struct row){.in1 = pool_source(pool), .in2 = {.value = (int32_t)points}};
	if (is_exact(call)) {
		requantize_init(&inside->row.to, out->dtype, in->frac_bits - out->frac_bits, call->rounding);
		row_init_mean(&inside->row, call->isa, row_magnitude(in->dtype));
		return;
	}
	struct mean mean;
	mean_init(&mean, points);
	inside->row.in2.value = (int32_t)mean.multiplier;
	requantize_init(&inside->row.to, out->dtype, mean.shift + in->frac_bits - out->frac_bits, call->rounding);
	row_init_product(&inside->row, call->isa, points * row_magnitude(in->dtype) * mean.multiplier);
}

/* Values [at, at + n), which share a reciprocal. */
static void means_inside(struct inside *inside, const struct pool *pool, int64_t at, int64_t n, int64_t *saturated)
{
	inside->row.in1.data = (const uint8_t *)pool->rows.to + at * pool->rows.width;
	inside->row.out = pool->out + at * pool->bytes;
	(is_exact(pool->call) ? row_mean : row_product)(&inside->row, n, saturated);
}

/* Rows [first, first + n) of the values, whose windows count as many rows of points. */
static void finish_rows(struct single *single, struct inside *inside, const struct pool *pool, int64_t first,
			int64_t n)
{
	const struct window_axis h = counted(&pool->window.h), w = counted(&pool->window.w);
	int64_t wide = pool->n_values / pool->rows.n_rows, count = inside->end - inside->first, tap, end,
		*saturated = &single->call->counts.saturated;
	window_taps(&h, pool->y + first, &tap, &end);
	if (count > 0 && inside->rows != end - tap)
		set_rows(inside, pool->call, pool, end - tap);
	if (count == w.out) {
		means_inside(inside, pool, first * wide, n * wide, saturated);
		return;
	}
	for (int64_t at = first * wide; at < (first + n) * wide; at += wide) {
		means_one_by_one(single, pool, &w, end - tap, at, at + inside->first, pool->x);
		if (count > 0)
			means_inside(inside, pool, at + inside->first, count, saturated);
		means_one_by_one(single, pool, &w, end - tap, at + inside->end, at + wide, pool->x + inside->end);
	}
}

static void run(struct kernel_call *call)
{
	struct pool pool;
	struct inside inside;
	struct single single;
	call->counts = (struct kernel_counts){.saturated = 0};
	pool_begin(&pool, call, FOLD_SUM);
	inside_init(&inside, &pool);
	single_init(&single, call);
	while (pool_next(&pool))
		for (int64_t row = 0, n; row < pool.rows.n_rows; row += n) {
			int64_t y = pool.y + row, left = pool.rows.n_rows - row, alike = inside.below - y;
			n = y < inside.above || alike < 1 ? 1 : left < alike ? left : alike;
			finish_rows(&single, &inside, &pool, row, n);
		}
}

static int64_t steps(const struct kernel_call *call)
{
	struct pool pool = {.window = pool_window(call)};
	struct inside inside;
	/* Any address: the sums are vectors' where the window is ordinary. */
	pool.rows.to = pool_is_wide(call) ? NULL : &pool;
	inside_init(&inside, &pool);
	return pool_steps(call, pool.window.w.out - (inside.end - inside.first) + 2);
}

const struct kernel kernel_avepool = {
	.number = NPUMEM_KERNEL_AVEPOOL,
	.by_feature = POOL_BY_FEATURE,
	.check = check,
	.scratch_bytes = pool_scratch_bytes,
	.steps = steps,
	.run = run,
};
