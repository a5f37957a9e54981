/* Depthwise 2D convolution: a group per input channel. With O = C * m, output channel c * m + j sees channel c.
 * Each output feature is made from its input feature where they lie: in one pass where depthwise.h can, else row
 * by row, the sums of a row taking in tap after tap. */
#include <string.h>

#include "daemon/device/kernel_support/windows/convolve.h"
#include "daemon/device/kernel_support/windows/depthwise.h"
#include "daemon/device/kernel_support/windows/depthwise_plane.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/steps.h"

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	return convolve_check(call, operands_get(call, CONVOLUTION_IN)->shape.c, error);
}

struct work {
	struct kernel_call *call;
	struct window window;
	struct weighted weighted;
	bool whole, plane; /* in one pass; by a plane */
	bool turned;	   /* H and W are exchanged: features of width 1 are a row as they lie */
	struct depthwise depthwise;
	struct depthwise_plane padded;
	int64_t piece, pending, looked;
};

/* The largest magnitude of a sum with its bias; past 32 bits where these are not enough. */
static int64_t largest(const struct work *work)
{
	const struct accumulator *accumulator = &work->weighted.accumulator;
	int64_t taps = work->window.h.kernel * work->window.w.kernel;
	int64_t bias = work->weighted.bias ? (int64_t)1 << (7 + accumulator->bias_shift) : 0;
	return taps * (1 << 14) + bias;
}

/* As their taps are for an ordinary window: few. */
static bool is_turned(const struct window *window)
{
	return window->w.in == 1 && window->w.out == 1 &&
	       window->h.kernel * window->w.kernel <= DEPTHWISE_PLANE_TAPS_MAX;
}

static void turn(struct window *window)
{
	struct window_axis h = window->h;
	window->h = window->w;
	window->w = h;
}

static void work_init(struct work *work, struct kernel_call *call)
{
	const struct npumem_dims *in = &operands_get(call, CONVOLUTION_IN)->shape;
	const struct npumem_dims *weights = &operands_get(call, CONVOLUTION_WEIGHTS)->shape;
	*work = (struct work){.call = call, .piece = kernel_piece(call)};
	window_read(call, in, weights->h, weights->w, &work->window, NULL);
	work->turned = is_turned(&work->window);
	if (work->turned)
		turn(&work->window);
	weighted_init(&work->weighted, call, &convolution_roles, weights->h * weights->w);
	const struct accumulator *accumulator = &work->weighted.accumulator;
	work->whole = accumulator->sum_bytes == 4 && accumulator->result.bytes == 1 && accumulator->cannot_wrap &&
		      depthwise_fits_fx8(call->isa, &work->window, &accumulator->result, largest(work));
	work->plane = !work->whole && depthwise_plane_fits(&work->window);
	if (!work->whole && !work->plane)
		work->weighted.accumulator.sum_bytes = sizeof(int64_t);
	if (work->whole)
		depthwise_init(&work->depthwise, &work->window, &accumulator->result);
	if (work->plane)
		depthwise_plane_init(&work->padded, call, &work->window, &work->weighted);
}

/* Of a row of outputs, as many as make a piece. */
static int64_t stretch(const struct kernel_call *call, int64_t width)
{
	return width < kernel_piece(call) ? width : kernel_piece(call);
}

static size_t scratch_bytes(const struct kernel_call *call)
{
	struct kernel_call copy = *call;
	struct work work;
	copy.scratch = NULL;
	work_init(&work, &copy);
	if (work.whole)
		return 0;
	if (work.plane)
		return depthwise_plane_scratch_bytes(call, &work.window);
	return (size_t)stretch(call, work.window.w.out) * sizeof(int64_t);
}

static int64_t steps(const struct kernel_call *call)
{
	/* In one step, where they are made in one pass. */
	enum { PRODUCTS = 32, OUTPUTS = 4 };
	const struct npumem_dims *out = &operands_get(call, CONVOLUTION_OUT)->shape;
	struct kernel_call copy = *call;
	struct work work;
	copy.scratch = NULL;
	work_init(&work, &copy);
	double outputs = (double)(out->n * out->c * out->h * out->w);
	double taps = (double)(work.window.h.kernel * work.window.w.kernel);
	double rows = (double)(out->n * out->c) * (double)out->h;
	/* A row is begun anew for each tap, where it is not made in one pass. */
	if (work.whole)
		return steps_whole(outputs * (taps / PRODUCTS + 1.0 / OUTPUTS) + rows * STEPS_ROW);
	return steps_whole(outputs * taps + rows * (taps * STEPS_ROW / 4 + STEPS_ROW));
}

/* Sums of outputs [x, x + n) of row y. False where they are no longer wanted. */
static bool sum_row(struct work *work, const uint8_t *in, const uint8_t *weights, int64_t y, int64_t x, int64_t n)
{
	const struct window_axis *h = &work->window.h, *w = &work->window.w;
	const struct weighted *weighted = &work->weighted;
	int64_t tap, end, *sums = work->call->scratch;
	memset(sums, 0, (size_t)n * sizeof(*sums));
	window_taps(h, y, &tap, &end);
	for (; tap < end; tap++)
		for (int64_t k = 0; k < w->kernel; k++) {
			int64_t first, past, row = window_at(h, y, tap) * w->in;
			window_outputs(w, k, &first, &past);
			first = first < x ? x : first;
			past = past > x + n ? x + n : past;
			int64_t weight = weighted_element(weights, weighted->weight_bytes, tap * w->kernel + k);
			for (; first < past; first++)
				sums[first - x] += weight * weighted_element(in, weighted->data_bytes,
									     row + window_at(w, first, k));
			if (!kernel_look(work->call, n, &work->looked))
				return false;
		}
	return true;
}

/* Each makes output channel o of batch item n; false where the rest is no longer wanted. */

static bool run_rows(struct work *work, int64_t o, const uint8_t *in, const uint8_t *weights, uint8_t *out)
{
	const struct window_axis *w = &work->window.w;
	for (int64_t y = 0; y < work->window.h.out; y++)
		for (int64_t x = 0; x < w->out; x += work->piece) {
			int64_t n = stretch(work->call, w->out - x);
			if (!sum_row(work, in, weights, y, x, n))
				return false;
			weighted_finish_channel(&work->weighted, work->call->scratch, n, o,
						out + (y * w->out + x) * work->weighted.accumulator.result.bytes,
						&work->call->counts);
			if (!kernel_step_rarely(work->call, n, &work->pending))
				return false;
		}
	return true;
}

static bool run_whole(struct work *work, int64_t o, const uint8_t *in, const uint8_t *weights, uint8_t *out)
{
	const struct window_axis *h = &work->window.h, *w = &work->window.w;
	const struct accumulator *accumulator = &work->weighted.accumulator;
	struct depthwise_channel channel = {in, weights, 0, out};
	if (work->weighted.bias)
		channel.bias = ((const int8_t *)work->weighted.bias)[o] * ((int64_t)1 << accumulator->bias_shift);
	int64_t rows = work->piece / w->out + 1;
	for (int64_t y = 0; y < h->out; y += rows)
		for (int64_t x = 0; x < w->out; x += work->piece) {
			int64_t n = stretch(work->call, w->out - x), count = h->out - y < rows ? h->out - y : rows;
			struct depthwise_outputs outputs = {y, y + count, x, x + n};
			work->call->counts.saturated += depthwise_run_fx8(work->call->isa, &work->depthwise, &channel, &outputs);
			if (!kernel_step_rarely(work->call, n * count, &work->pending))
				return false;
		}
	return true;
}

static bool run_plane(struct work *work, int64_t o, const uint8_t *in, const uint8_t *weights, uint8_t *out)
{
	return depthwise_plane_run(&work->padded, o, in, weights, out, &work->pending);
}

/* A filter's taps, in the window's order. */
static const uint8_t *find_filter(const struct work *work, const uint8_t *filter, uint8_t *buffer)
{
	int64_t h = work->window.h.kernel, w = work->window.w.kernel, bytes = work->weighted.weight_bytes;
	if (!work->turned)
		return filter;
	for (int64_t y = 0; y < h; y++)
		for (int64_t x = 0; x < w; x++)
			memcpy(buffer + (y * w + x) * bytes, filter + (x * h + y) * bytes, (size_t)bytes);
	return buffer;
}

static void run(struct kernel_call *call)
{
	_Alignas(2) uint8_t buffer[2 * DEPTHWISE_PLANE_TAPS_MAX];
	const struct kernel_operand *in = operands_get(call, CONVOLUTION_IN),
				    *out = operands_get(call, CONVOLUTION_OUT);
	const struct kernel_operand *weights = operands_get(call, CONVOLUTION_WEIGHTS);
	struct work work;
	work_init(&work, call);
	int64_t taps = weights->shape.h * weights->shape.w, times = out->shape.c / in->shape.c;
	call->counts = (struct kernel_counts){.macs = out->shape.n * out->shape.c * window_pairs(&work.window.h) *
						      window_pairs(&work.window.w)};
	for (int64_t n = 0; n < out->shape.n; n++)
		for (int64_t o = 0; o < out->shape.c; o++) {
			const uint8_t *filter = find_filter(
				&work, (const uint8_t *)weights->data + o * taps * work.weighted.weight_bytes,
				buffer);
			const uint8_t *from = kernel_feature(in, n, o / times);
			uint8_t *to = kernel_feature(out, n, o);
			if (!(work.whole   ? run_whole
			      : work.plane ? run_plane
					   : run_rows)(&work, o, from, filter, to))
				return;
		}
	kernel_step(call, work.pending);
}

const struct kernel kernel_depthwise_conv2d = {
	.number = NPUMEM_KERNEL_DEPTHWISE_CONV2D,
	.by_feature = 1 << CONVOLUTION_IN | 1 << CONVOLUTION_OUT,
	.check = check,
	.scratch_bytes = scratch_bytes,
	.steps = steps,
	.run = run,
};
