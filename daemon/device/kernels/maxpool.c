/* Maximum over the valid points of each window. First down the columns, then along the rows: a window of kh x kw
 * costs kh + kw comparisons. */
#include "daemon/device/fixed/requantize.h"
#include "daemon/device/kernel_support/elements.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/pool.h"

/* A row of the input, the maxima of columns, the maxima of windows. */
static size_t scratch_bytes(const struct kernel_call *call)
{
	return (size_t)(2 * operands_get(call, POOL_IN)->shape.w + operands_get(call, POOL_OUT)->shape.w) *
	       sizeof(int32_t);
}

static void take_larger(int32_t *to, const int32_t *from, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		to[i] = from[i] > to[i] ? from[i] : to[i];
}

/* Maxima of columns of the input rows that output row y sees; `first` is the place of the feature in `in`. False
 * where they are no longer wanted. */
static bool columns(const struct kernel_operand *in, const struct window_axis *h, int64_t first, int64_t y,
		    int32_t *row, int32_t *maxima, struct pool_row *told)
{
	int64_t width = in->shape.w, tap, end;
	window_taps(h, y, &tap, &end);
	for (int64_t t = tap; t < end; t++) {
		int64_t at = first + window_at(h, y, t) * width, past;
		for (int64_t x = 0; x < width; x = past) {
			past = pool_row_piece(told, x, width);
			elements_load32(in->dtype, in->data, at + x, past - x, (t == tap ? maxima : row) + x);
			if (t > tap)
				take_larger(maxima + x, row + x, past - x);
			if (!pool_row_work(told, past - x))
				return false;
		}
	}
	return true;
}

static bool windows(const struct window_axis *w, const int32_t *columns, int32_t *maxima, struct pool_row *told)
{
	for (int64_t x = 0; x < w->out; x++) {
		int64_t tap, end, past;
		window_taps(w, x, &tap, &end);
		int32_t largest = columns[window_at(w, x, tap)];
		for (int64_t from = tap; from < end; from = past) {
			past = pool_row_piece(told, from, end);
			for (int64_t t = from; t < past; t++) {
				int32_t next = columns[window_at(w, x, t)];
				largest = next > largest ? next : largest;
			}
			if (!pool_row_work(told, past - from))
				return false;
		}
		maxima[x] = largest;
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
	struct requantize requantize;
	requantize_init(&requantize, out->dtype, in->frac_bits - out->frac_bits, call->rounding);
	int32_t *row = call->scratch, *maxima = row + in->shape.w, *results = maxima + in->shape.w;
	uint8_t *to = out->data;
	call->counts = (struct kernel_counts){.saturated = 0};
	for (int64_t feature = 0; feature < in->shape.n * in->shape.c; feature++) {
		for (int64_t y = 0; y < window.h.out; y++) {
			if (!columns(in, &window.h, feature * in->shape.h * in->shape.w, y, row, maxima, &told) ||
			    !windows(&window.w, maxima, results, &told))
				return;
			call->counts.saturated += requantize_row32(&requantize, results, window.w.out, to);
			to += window.w.out * requantize.bytes;
			if (!pool_row_end(&told))
				return;
		}
	}
}

const struct kernel kernel_maxpool = {
	.number = NPUMEM_KERNEL_MAXPOOL,
	.check = pool_check,
	.scratch_bytes = scratch_bytes,
	.run = run,
};
