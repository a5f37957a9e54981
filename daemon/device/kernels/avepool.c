/* Mean over the valid points of each window, by the reference's truncated reciprocal or, with exact=1, rounded
 * once. First down the columns, then along the rows. The sum is held by the accumulator; its product with the
 * reciprocal is exact, so that large windows do not overflow as the reference's 32 bits do. */
#include "daemon/device/fixed/accumulator.h"
#include "daemon/device/fixed/mean.h"
#include "daemon/device/kernel_support/elements.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/pool.h"

static bool is_exact(const struct kernel_call *call)
{
	return kernel_param(call, NPUMEM_PARAM_EXACT, 0, 0) != 0;
}

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	int status = operands_check_param(call, NPUMEM_PARAM_EXACT, "",
					  kernel_param(call, NPUMEM_PARAM_EXACT, 0, 0), 0, 1, error);
	return status ? status : pool_check(call, error);
}

/* A row of the input, the sums of columns, the means of windows. */
static size_t scratch_bytes(const struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, POOL_IN), *out = operands_get(call, POOL_OUT);
	return (size_t)(2 * in->shape.w + out->shape.w) * sizeof(int64_t);
}

/* Sums of columns over the input rows that output row y sees; `first` is the place of the feature in `in`. Returns
 * how many rows these are; 0: the rest is no longer wanted. */
static int64_t columns(const struct kernel_operand *in, const struct window_axis *h, int64_t first, int64_t y,
		       int64_t *row, int64_t *sums, struct pool_row *told)
{
	int64_t width = in->shape.w, tap, end;
	window_taps(h, y, &tap, &end);
	for (int64_t t = tap; t < end; t++) {
		int64_t at = first + window_at(h, y, t) * width, past;
		for (int64_t x = 0; x < width; x = past) {
			past = pool_row_piece(told, x, width);
			elements_load64(in->dtype, in->data, at + x, past - x, (t == tap ? sums : row) + x);
			for (int64_t i = x; t > tap && i < past; i++)
				sums[i] += row[i];
			if (!pool_row_work(told, past - x))
				return 0;
		}
	}
	return end - tap;
}

/* The mean of n points, in the container of `to`. */
static int64_t mean_of(struct kernel_call *call, int64_t sum, const struct mean *mean, const struct requantize *to)
{
	int64_t in = operands_get(call, POOL_IN)->frac_bits, out = operands_get(call, POOL_OUT)->frac_bits;
	struct kernel_counts *counts = &call->counts;
	sum = accumulator_total(sum, 0, 0, to->bytes == 1 ? 32 : 40, &counts->wrapped);
	if (is_exact(call))
		return mean_exact(mean, sum, in, out, call->rounding, to->low, to->high, &counts->saturated);
	return mean_truncated(mean, sum, in, out, call->rounding, to->low, to->high, &counts->saturated);
}

/* Means of the windows of one output row, from the sums of columns of `rows` points each. False where they are no
 * longer wanted. */
static bool windows(struct kernel_call *call, const struct window_axis *w, const int64_t *sums, int64_t rows,
		    const struct requantize *to, int64_t *means, struct pool_row *told)
{
	struct mean mean = {.n = 0};
	for (int64_t x = 0; x < w->out; x++) {
		int64_t tap, end, past, sum = 0;
		window_taps(w, x, &tap, &end);
		if (mean.n != rows * (end - tap))
			mean_init(&mean, rows * (end - tap));
		for (; tap < end; tap = past) {
			past = pool_row_piece(told, tap, end);
			for (int64_t t = tap; t < past; t++)
				sum += sums[window_at(w, x, t)];
			if (!pool_row_work(told, past - tap))
				return false;
		}
		means[x] = mean_of(call, sum, &mean, to);
	}
	return true;
}

static void run(struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, POOL_IN), *out = operands_get(call, POOL_OUT);
	struct window window;
	struct pool_row told;
	pool_window(call, &window);
	pool_row_init(&told, call, &window);
	struct requantize store; /* of values that are already in the container */
	requantize_init(&store, out->dtype, 0, call->rounding);
	int64_t *row = call->scratch, *sums = row + in->shape.w, *means = sums + in->shape.w;
	uint8_t *to = out->data;
	call->counts = (struct kernel_counts){.saturated = 0};
	for (int64_t feature = 0; feature < in->shape.n * in->shape.c; feature++) {
		for (int64_t y = 0; y < window.h.out; y++) {
			int64_t first = feature * in->shape.h * in->shape.w;
			int64_t rows = columns(in, &window.h, first, y, row, sums, &told);
			if (!rows || !windows(call, &window.w, sums, rows, &store, means, &told))
				return;
			requantize_row64(&store, means, window.w.out, to);
			to += window.w.out * store.bytes;
			if (!pool_row_end(&told))
				return;
		}
	}
}

const struct kernel kernel_avepool = {
	.number = NPUMEM_KERNEL_AVEPOOL,
	.check = check,
	.scratch_bytes = scratch_bytes,
	.run = run,
};
