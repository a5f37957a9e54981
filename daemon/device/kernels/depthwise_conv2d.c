/* Depthwise 2D convolution: a group per input channel. With O = C * m, output channel c * m + j sees channel c.
 * Each output feature is made from its input feature where they lie: in one pass where depthwise.h can, else row
 * by row, the sums of a row taking in tap after tap. Threads share the output channels. */
#include <string.h>

#include "daemon/device/kernel_support/windows/convolve.h"
#include "daemon/device/kernel_support/windows/depthwise.h"
#include "daemon/device/kernel_support/windows/depthwise_plane.h"
#include "daemon/device/kernel_support/gathered_pack.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/steps.h"
#include "daemon/device/least.h"
#include "daemon/device/memory/blocks.h"

enum {
	THREADS_MAX = 8,
	PART_STEPS = 1 << 20, /* of what a thread takes at once, which it does not leave */
};

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	return convolve_check(call, operands_get(call, CONVOLUTION_IN)->shape.c, error);
}

/* call->plan: which way outputs are made. */
struct way {
	struct window window;
	bool is_turned;
	bool whole, plane; /* in one pass; by a plane; else row by row */
	unsigned n_threads;
	struct weighted weighted;
};
_Static_assert(sizeof(struct way) <= KERNEL_PLAN_BYTES, "a plan fits where it is made");

/* What threads share. */
struct team {
	const struct kernel_call *call;
	int64_t batch, n_batches; /* output channels of a part, and parts of one n */
	_Atomic int64_t next, saturated, wrapped;
};

/* What a thread has by itself: in its call scratch memory and counts. */
struct work {
	struct kernel_call call;
	const struct way *way;
	struct depthwise depthwise;
	struct depthwise_plane padded;
	int64_t piece, pending, looked;
};

/* The largest magnitude of a sum with its bias; past 32 bits where these are not enough. */
static int64_t largest(const struct kernel_call *call, const struct way *way)
{
	int64_t taps = way->window.h.kernel * way->window.w.kernel;
	int64_t bias = operands_get(call, CONVOLUTION_BIAS)
			       ? (int64_t)1 << (7 + way->weighted.accumulator.bias_shift)
			       : 0;
	return taps * (1 << 14) + bias;
}

/* H and W are exchanged, where features of width 1 are a row as they lie. */
static bool is_turned(const struct window *window)
{
	return window->w.in == 1 && window->w.out == 1 &&
	       window->h.kernel * window->w.kernel <= DEPTHWISE_PLANE_TAPS_MAX;
}

/* Whether it is turned. */
static bool load_window(const struct kernel_call *call, struct window *window)
{
	const struct npumem_dims *weights = &operands_get(call, CONVOLUTION_WEIGHTS)->shape;
	struct window loaded;
	window_read(call, &operands_get(call, CONVOLUTION_IN)->shape, weights->h, weights->w, &loaded, NULL);
	bool turned = is_turned(&loaded);
	*window = turned ? (struct window){.h = loaded.w, .w = loaded.h} : loaded;
	return turned;
}

static double n_taps(const struct way *way)
{
	return (double)(way->window.h.kernel * way->window.w.kernel);
}

/* Without what rows cost by themselves. */
static double output_steps(const struct kernel_call *call)
{
	/* In one step, where they are made in one pass. */
	enum { PRODUCTS = 32, OUTPUTS = 4 };
	const struct npumem_dims *out = &operands_get(call, CONVOLUTION_OUT)->shape;
	const struct way *way = call->plan;
	double outputs = (double)(out->n * out->c * out->h * out->w);
	return outputs * (way->whole ? n_taps(way) / PRODUCTS + 1.0 / OUTPUTS : n_taps(way));
}

/* Of an output channel of one n. */
static double channel_steps(const struct kernel_call *call)
{
	const struct npumem_dims *in = &operands_get(call, CONVOLUTION_IN)->shape,
				 *out = &operands_get(call, CONVOLUTION_OUT)->shape;
	return output_steps(call) / (double)(out->n * out->c) +
	       (((const struct way *)call->plan)->plane ? (double)(in->h * in->w) : 0);
}

static unsigned n_threads(const struct kernel_call *call)
{
	const struct npumem_dims *out = &operands_get(call, CONVOLUTION_OUT)->shape;
	if (!kernel_is_shared(call, output_steps(call)) || channel_steps(call) > PART_STEPS)
		return 1;
	return (unsigned)least(least(out->n * out->c, THREADS_MAX), call->crew->n_threads);
}

static void plan(struct kernel_call *call)
{
	struct way *way = call->plan;
	way->is_turned = load_window(call, &way->window);
	weighted_init(&way->weighted, call, &convolution_roles, way->window.h.kernel * way->window.w.kernel);
	struct accumulator *accumulator = &way->weighted.accumulator;
	way->whole = accumulator->sum_bytes == 4 && accumulator->result.bytes == 1 && accumulator->cannot_wrap &&
		     depthwise_fits_fx8(call->isa, &way->window, &accumulator->result, largest(call, way));
	way->plane = !way->whole && depthwise_plane_fits(&way->window);
	if (!way->whole && (!way->plane || accumulator->sum_bytes != sizeof(int32_t)))
		accumulator->sum_bytes = sizeof(int64_t);
	way->n_threads = n_threads(call);
}

/* Of one thread. */
static size_t thread_bytes(const struct kernel_call *call)
{
	enum { ALIGN = 64 };
	const struct way *way = call->plan;
	if (way->whole)
		return 0;
	size_t bytes = way->plane ? depthwise_plane_scratch_bytes(call, &way->window)
				  : (size_t)kernel_stretch(call, way->window.w.out) * sizeof(int64_t);
	return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t scratch_bytes(const struct kernel_call *call)
{
	return thread_bytes(call) * ((const struct way *)call->plan)->n_threads;
}

static void work_init(struct work *work, const struct kernel_call *call, unsigned number)
{
	const struct way *way = call->plan;
	work->call = *call;
	if (call->scratch)
		work->call.scratch = (uint8_t *)call->scratch + number * thread_bytes(call);
	work->call.counts = (struct kernel_counts){.macs = 0};
	work->way = way;
	work->piece = kernel_piece(call);
	work->pending = work->looked = 0;
	if (way->whole)
		depthwise_init(&work->depthwise, &way->window, &way->weighted.accumulator.result);
	if (way->plane)
		depthwise_plane_init(&work->padded, &work->call, &way->window, &way->weighted);
}

/* What it takes to fill the planes, of each feature once. */
static double plane_steps(const struct kernel_call *call)
{
	enum { FEATURE = 400, ROW = 16, ELEMENTS = 2 };
	const struct npumem_dims *in = &operands_get(call, CONVOLUTION_IN)->shape;
	return (double)(in->n * in->c) * (FEATURE + (double)in->h * (ROW + (double)in->w / ELEMENTS));
}

static int64_t steps(const struct kernel_call *call)
{
	enum { SCALAR = 4 }; /* as much, without vectors */
	const struct npumem_dims *out = &operands_get(call, CONVOLUTION_OUT)->shape;
	const struct way *way = call->plan;
	double rows = (double)(out->n * out->c) * (double)out->h;
	/* A row is begun anew for each tap, where it is not made in one pass. */
	return steps_whole(output_steps(call) * (call->isa == ISA_SCALAR ? SCALAR : 1) +
			   rows * (way->whole ? STEPS_ROW : n_taps(way) * STEPS_ROW / 4 + STEPS_ROW) +
			   (way->plane ? plane_steps(call) : 0));
}

/* Sums of outputs [x, x + n) of row y. False where they are no longer wanted. */
static bool sum_row(struct work *work, const uint8_t *in, const uint8_t *weights, int64_t y, int64_t x, int64_t n)
{
	const struct window_axis *h = &work->way->window.h, *w = &work->way->window.w;
	const struct weighted *weighted = &work->way->weighted;
	int64_t tap, end, *sums = work->call.scratch;
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
			if (!kernel_look(&work->call, n, &work->looked))
				return false;
		}
	return true;
}

/* Each makes outputs of channel o, or of several ones; false where the rest is no longer wanted. */

static bool run_rows(struct work *work, int64_t o, const struct depthwise_channel *channel)
{
	const struct window_axis *w = &work->way->window.w;
	for (int64_t y = 0; y < work->way->window.h.out; y++)
		for (int64_t x = 0; x < w->out; x += work->piece) {
			int64_t n = kernel_stretch(&work->call, w->out - x);
			if (!sum_row(work, channel->in, channel->weights, y, x, n))
				return false;
			weighted_finish_channel(
				&work->way->weighted, work->call.scratch, n, o,
				channel->out + (y * w->out + x) * work->way->weighted.accumulator.result.bytes,
				&work->call.counts);
			if (!kernel_step_rarely(&work->call, n, &work->pending))
				return false;
		}
	return true;
}

static int64_t bias_of(const struct work *work, int64_t o)
{
	const struct weighted *weighted = &work->way->weighted;
	if (!work->way->whole || !weighted->bias)
		return 0;
	return weighted_element(weighted->bias, 1, o) * ((int64_t)1 << weighted->accumulator.bias_shift);
}

static bool run_whole(struct work *work, const struct depthwise_channel *channels, int64_t n_channels)
{
	const struct window_axis *h = &work->way->window.h, *w = &work->way->window.w;
	int64_t rows = work->piece / w->out + 1, columns = least(w->out, work->piece + DEPTHWISE_VECTOR);
	for (int64_t y = 0; y < h->out; y += rows)
		for (int64_t x = 0; x < w->out; x += columns) {
			int64_t n = least(w->out - x, columns), count = least(h->out - y, rows);
			struct depthwise_outputs outputs = {channels, n_channels, y, y + count, x, x + n};
			work->call.counts.saturated +=
				depthwise_run_fx8(work->call.isa, &work->depthwise, &outputs);
			if (!kernel_step_rarely(&work->call, n * count * n_channels, &work->pending))
				return false;
		}
	return true;
}

static bool run_plane(struct work *work, int64_t o, const struct depthwise_channel *channel)
{
	return depthwise_plane_run(&work->padded, o, channel->in, channel->weights, channel->out, &work->pending);
}

static bool run_channels(struct work *work, int64_t o, const struct depthwise_channel *channels, int64_t n)
{
	if (work->way->whole)
		return run_whole(work, channels, n);
	for (int64_t i = 0; i < n; i++)
		if (!(work->way->plane ? run_plane : run_rows)(work, o + i, &channels[i]))
			return false;
	return true;
}

/* The taps of filters are packed in the window's order, without gaps. */

static size_t pack_bytes(const struct kernel_call *call)
{
	return gathered_pack_bytes(call, CONVOLUTION_WEIGHTS);
}

static bool pack(const struct kernel_call *call, void *to)
{
	const struct kernel_operand *weights = operands_get(call, CONVOLUTION_WEIGHTS);
	const struct npumem_dims *shape = &weights->shape;
	if (!((const struct way *)call->plan)->is_turned)
		return gathered_pack(call, CONVOLUTION_WEIGHTS, to);
	int64_t bytes = npumem_dtype_bytes(weights->dtype), taps = shape->h * shape->w * bytes, looked = 0;
	for (int64_t o = 0; o < shape->c; o++) {
		const struct blocks blocks = {
			bytes, {shape->h, shape->w}, {bytes, shape->h * bytes}, {shape->w * bytes, bytes}};
		blocks_paths(call->isa)->transpose((uint8_t *)to + o * taps,
						   (const uint8_t *)weights->data + o * taps, &blocks);
		if (!kernel_look(call, taps, &looked))
			return false;
	}
	return true;
}

/* Output channels from o on. */
static bool run_part(struct work *work, int64_t n, int64_t o, int64_t count)
{
	const struct kernel_operand *in = operands_get(&work->call, CONVOLUTION_IN),
				    *out = operands_get(&work->call, CONVOLUTION_OUT);
	const struct window_axis *h = &work->way->window.h, *w = &work->way->window.w;
	const struct weighted *weighted = &work->way->weighted;
	const uint8_t *weights = work->call.pack;
	int64_t taps = h->kernel * w->kernel * weighted->weight_bytes, times = out->shape.c / in->shape.c;
	struct depthwise_channel channels[DEPTHWISE_CHANNELS_MAX];
	for (int64_t i = 0; i < count; i++) {
		channels[i] = (struct depthwise_channel){kernel_feature(in, n, (o + i) / times),
							 weights + (o + i) * taps, bias_of(work, o + i),
							 kernel_feature(out, n, o + i)};
		kernel_prefetch(channels[i].in, h->in * w->in * weighted->data_bytes);
		kernel_prefetch(channels[i].out, h->out * w->out * weighted->data_bytes);
	}
	return run_channels(work, o, channels, count);
}

static void run_parts(void *arg, unsigned number)
{
	struct team *team = arg;
	const struct npumem_dims *out = &operands_get(team->call, CONVOLUTION_OUT)->shape;
	struct work work;
	int64_t part, o;
	bool is_wanted = true;
	if (number >= ((const struct way *)team->call->plan)->n_threads)
		return;
	work_init(&work, team->call, number);
	while (is_wanted && (part = atomic_fetch_add(&team->next, 1)) < out->n * team->n_batches) {
		o = part % team->n_batches * team->batch;
		is_wanted = run_part(&work, part / team->n_batches, o, least(out->c - o, team->batch)) &&
			    !kernel_is_wanted_elsewhere(&work.call);
	}
	if (!kernel_cancelled(team->call->progress))
		kernel_step(&work.call, work.pending);
	atomic_fetch_add(&team->saturated, work.call.counts.saturated);
	atomic_fetch_add(&team->wrapped, work.call.counts.wrapped);
}

static void run(struct kernel_call *call)
{
	const struct npumem_dims *out = &operands_get(call, CONVOLUTION_OUT)->shape;
	struct way *way = call->plan;
	struct team team = {.call = call};
	/* As many as make a piece. */
	team.batch = least(kernel_piece(call) / (out->h * out->w) + 1, least(out->c, DEPTHWISE_CHANNELS_MAX));
	team.batch = least(team.batch, (int64_t)(PART_STEPS / channel_steps(call)) + 1);
	team.n_batches = (out->c + team.batch - 1) / team.batch;
	weighted_load(&way->weighted, call, &convolution_roles);
	kernel_share(call, way->n_threads > 1 ? output_steps(call) : 0, run_parts, &team);
	call->counts = (struct kernel_counts){.saturated = team.saturated,
					      .wrapped = team.wrapped,
					      .macs = out->n * out->c * window_pairs(&way->window.h) *
						      window_pairs(&way->window.w)};
}

const struct kernel kernel_depthwise_conv2d = {
	.number = NPUMEM_KERNEL_DEPTHWISE_CONV2D,
	.by_feature = 1 << CONVOLUTION_IN | 1 << CONVOLUTION_OUT,
	.check = check,
	.plan = plan,
	.scratch_bytes = scratch_bytes,
	.pack_bytes = pack_bytes,
	.pack = pack,
	.packed = 1 << CONVOLUTION_WEIGHTS,
	.pack_steps = CONVOLUTION_PACK_STEPS,
	.steps = steps,
	.run = run,
};
