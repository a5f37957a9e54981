/* A plane has the inputs of one channel that one phase of the stride meets, padding included, in rows of one width
 * for all planes; so a tap is an offset. The sums of a row's end, where a window would hang over into the next
 * row, are dropped. */
#include "daemon/device/kernel_support/planes.h"

#include <string.h>

enum {
	PLANES_OUTPUTS_MAX = 7,	   /* output channels of a group; from there on patches are faster */
	PLANES_SUMS = 2048,	   /* of a block of rows, unless one row has more */
	PLANES_STRETCH = 65536,	   /* of a row that is longer than a block */
	PLANES_TAPS = 256,	   /* that are added at once, and no more than … */
	PLANES_PRODUCTS = 1 << 22, /* … of these between two looks at whether the rest is still wanted */
};

struct planes {
	const struct convolution *convolution;
	const struct phase *phase;
	struct mac mac;
	int64_t rows, width;		     /* of a plane */
	int64_t n_taps, block;		     /* of a sum; rows of outputs in a block */
	int64_t *offsets;		     /* of the taps; this and what follows is in scratch */
	int16_t *planes, *weights, *staging; /* the weights of one output channel */
	void *sums;
};

/* Rows (or columns) of the padded input in one plane. */
static int64_t plane_extent(const struct window_axis *axis)
{
	return axis->out - 1 + (axis->kernel - 1) * axis->dilation / axis->stride + 1;
}

/* Planes cost memory and time by their size, whatever is in them: padding and stride must not dwarf the input. */
static bool is_ordinary(const struct window_axis *axis)
{
	return axis->kernel > 0 && axis->stride * plane_extent(axis) <= 2 * axis->in + 8;
}

bool planes_fit(const struct convolution *convolution, const struct phase *phase)
{
	return convolution->n_outputs <= PLANES_OUTPUTS_MAX && is_ordinary(&phase->h.window) &&
	       is_ordinary(&phase->w.window);
}

/* Lays out the scratch memory and returns its size. */
static size_t planes_init(struct planes *p, const struct convolution *convolution, const struct phase *phase)
{
	const struct window_axis *h = &phase->h.window, *w = &phase->w.window;
	*p = (struct planes){
		.convolution = convolution,
		.phase = phase,
		.mac = {2, convolution->weighted.accumulator.sum_bytes},
		.rows = plane_extent(h),
		.width = plane_extent(w),
		.n_taps = convolution_taps(convolution, phase),
	};
	p->block = p->width < PLANES_SUMS ? PLANES_SUMS / p->width : 1;
	p->block = p->block < h->out ? p->block : h->out;

	int64_t planes = convolution_aligned(
		(convolution->n_inputs * h->stride * w->stride * p->rows * p->width + MAC_STEP) * 2);
	int64_t offsets = convolution_aligned(p->n_taps * 8), weights = convolution_aligned(p->n_taps * 2);
	int64_t sums = convolution_aligned((p->block * p->width + MAC_STEP) * 8);
	uint8_t *scratch = convolution->call->scratch;
	if (scratch) {
		p->planes = (int16_t *)scratch;
		p->offsets = (int64_t *)(scratch + planes);
		p->weights = (int16_t *)(scratch + planes + offsets);
		p->sums = scratch + planes + offsets + weights;
		p->staging = (int16_t *)(scratch + planes + offsets + weights + sums);
	}
	return (size_t)(planes + offsets + weights + sums + p->block * w->out * 2);
}

size_t planes_scratch_bytes(const struct convolution *convolution, const struct phase *phase)
{
	struct planes p;
	return planes_init(&p, convolution, phase);
}

/* Plane (phase_y, phase_x) of input channel i of a group begins here. */
static int64_t plane_at(const struct planes *p, int64_t i, int64_t phase_y, int64_t phase_x)
{
	int64_t plane = (i * p->phase->h.window.stride + phase_y) * p->phase->w.window.stride + phase_x;
	return plane * p->rows * p->width;
}

/* These fill scratch memory; each false where it is no longer wanted. */

static bool set_offsets(const struct planes *p)
{
	const struct window_axis *h = &p->phase->h.window, *w = &p->phase->w.window;
	int64_t k = 0, pending = 0;
	for (int64_t i = 0; i < p->convolution->n_inputs; i++) {
		for (int64_t y = 0; y < h->kernel; y++)
			for (int64_t x = 0; x < w->kernel; x++, k++) {
				int64_t at_y = y * h->dilation, at_x = x * w->dilation;
				p->offsets[k] = plane_at(p, i, at_y % h->stride, at_x % w->stride) +
						at_y / h->stride * p->width + at_x / w->stride;
			}
		if (!kernel_look(p->convolution->call, h->kernel * w->kernel, &pending))
			return false;
	}
	return true;
}

static bool load_weights(const struct planes *p, int64_t o)
{
	const struct convolution *c = p->convolution;
	const struct phase_axis *h = &p->phase->h, *w = &p->phase->w;
	int64_t k = 0, pending = 0;
	for (int64_t i = 0; i < c->n_inputs; i++) {
		int64_t at = convolution_weight(c, p->phase, o, i);
		for (int64_t y = 0; y < h->window.kernel; y++, at += h->tap_step * w->kernel)
			for (int64_t x = 0; x < w->window.kernel; x++)
				p->weights[k++] = (int16_t)weighted_element(c->weights, c->weighted.weight_bytes,
									    at + x * w->tap_step);
		if (!kernel_look(c->call, h->window.kernel * w->window.kernel, &pending))
			return false;
	}
	return true;
}

/* to[j] = from[j * step] for j below n, in each of `rows` rows; the common steps by themselves, because compilers
 * vectorize what is constant. */
#define SPREAD(name, from_type)                                                                                   \
	static void name(const from_type *restrict from, int64_t from_row, int64_t step, int16_t *restrict to,    \
			 int64_t to_row, int64_t rows, int64_t n)                                                 \
	{                                                                                                         \
		for (; rows > 0; rows--, from += from_row, to += to_row) {                                        \
			if (step == 1)                                                                            \
				for (int64_t j = 0; j < n; j++)                                                   \
					to[j] = from[j];                                                          \
			else if (step == 2)                                                                       \
				for (int64_t j = 0; j < n; j++)                                                   \
					to[j] = from[2 * j];                                                      \
			else                                                                                      \
				for (int64_t j = 0; j < n; j++)                                                   \
					to[j] = from[j * step];                                                   \
		}                                                                                                 \
	}
SPREAD(spread8, int8_t)
SPREAD(spread16, int16_t)

/* The elements of one axis of a plane that are not padding: element `first` is input `in`, the next one `in` +
 * stride, `n` of them. */
static void find_inputs(const struct window_axis *axis, int64_t phase, int64_t extent, int64_t *first, int64_t *in,
			int64_t *n)
{
	*first = axis->before > phase ? (axis->before - phase + axis->stride - 1) / axis->stride : 0;
	*in = *first * axis->stride + phase - axis->before;
	int64_t inputs = *in < axis->in ? (axis->in - *in - 1) / axis->stride + 1 : 0;
	*n = inputs < extent - *first ? inputs : extent - *first;
}

/* `rows` rows of n elements, a plane's width apart, from element `in` on, in pieces. */
static bool spread(const struct planes *p, int64_t in, int16_t *plane, int64_t rows, int64_t n, int64_t *pending)
{
	const struct window_axis *h = &p->phase->h.window, *w = &p->phase->w.window;
	const struct convolution *c = p->convolution;
	int64_t in_row = h->stride * w->in, piece = kernel_piece(c->call), past;
	int64_t together = n < piece ? piece / n : 1, few;
	for (int64_t y = 0; y < rows; y += few) {
		few = rows - y < together ? rows - y : together;
		for (int64_t x = 0; x < n; x = past) {
			int64_t from = in + y * in_row + x * w->stride;
			int16_t *to = plane + y * p->width + x;
			past = n - x < piece ? n : x + piece;
			if (c->weighted.data_bytes == 1)
				spread8((const int8_t *)c->in + from, in_row, w->stride, to, p->width, few,
					past - x);
			else
				spread16((const int16_t *)c->in + from, in_row, w->stride, to, p->width, few,
					 past - x);
			if (!kernel_look(c->call, few * (past - x), pending))
				return false;
		}
	}
	return true;
}

/* The part of one input channel, whose rows begin at element `in`, that lies in one plane. */
static bool fill_plane(const struct planes *p, int64_t in, int64_t phase_y, int64_t phase_x, int16_t *plane,
		       int64_t *pending)
{
	const struct window_axis *h = &p->phase->h.window, *w = &p->phase->w.window;
	int64_t row, y, rows, column, x, n;
	find_inputs(h, phase_y, p->rows, &row, &y, &rows);
	find_inputs(w, phase_x, p->width, &column, &x, &n);
	if (rows <= 0 || n <= 0)
		return true;
	return spread(p, in + y * w->in + x, plane + row * p->width + column, rows, n, pending);
}

static bool fill_planes(const struct planes *p, int64_t batch, int64_t group)
{
	const struct phase *phase = p->phase;
	int64_t pending = 0, end = plane_at(p, p->convolution->n_inputs, 0, 0) + MAC_STEP, past;
	for (int64_t at = 0; at < end; at = past) {
		past = end - at < PLANES_STRETCH ? end : at + PLANES_STRETCH;
		memset(p->planes + at, 0, (size_t)(past - at) * sizeof(int16_t));
		if (!kernel_look(p->convolution->call, past - at, &pending))
			return false;
	}
	for (int64_t i = 0; i < p->convolution->n_inputs; i++) {
		int64_t in = convolution_row(p->convolution, phase, batch, group, i, 0);
		for (int64_t y = 0; y < phase->h.window.stride; y++)
			for (int64_t x = 0; x < phase->w.window.stride; x++)
				if (!fill_plane(p, in, y, x, p->planes + plane_at(p, i, y, x), &pending))
					return false;
	}
	return true;
}

/* Drops the ends of rows. */
#define CLOSE_UP(name, sum_type)                                                                                  \
	static void name(sum_type *sums, int64_t rows, int64_t width, int64_t out)                                \
	{                                                                                                         \
		for (int64_t y = 1; y < rows && out < width; y++)                                                 \
			for (int64_t x = 0; x < out; x++)                                                         \
				sums[y * out + x] = sums[y * width + x];                                          \
	}
CLOSE_UP(close_up32, int32_t)
CLOSE_UP(close_up64, int64_t)

/* The sums [from, from + n) of the rows that begin at `first`; all taps of `total` sums are `elements` outputs. */
static bool add_taps(const struct planes *p, int64_t first, int64_t from, int64_t n, int64_t total,
		     int64_t elements)
{
	const struct kernel_call *call = p->convolution->call;
	void *sums = (uint8_t *)p->sums + from * p->mac.sum_bytes;
	int64_t most = PLANES_PRODUCTS / n < PLANES_TAPS ? PLANES_PRODUCTS / n : PLANES_TAPS, looked = 0;
	memset(sums, 0, (size_t)n * p->mac.sum_bytes);
	for (int64_t k = 0; k < p->n_taps; k += most) {
		int64_t taps = p->n_taps - k < most ? p->n_taps - k : most;
		mac_rows(&p->mac, sums, p->planes + first * p->width + from, p->offsets + k, p->weights + k, taps,
			 n);
		if ((k + taps - looked) * n < kernel_piece(call))
			continue;
		looked = k + taps;
		if (!kernel_part(call, elements, from * p->n_taps + looked * n, total * p->n_taps))
			return false;
	}
	return true;
}

/* Output rows [first, first + rows) of channel o. */
static bool run_rows(const struct planes *p, int64_t batch, int64_t o, int64_t first, int64_t rows)
{
	int64_t out = p->phase->w.window.out, past;
	/* Up to a full step, which may reach into the next plane, or into the zeros after the last. */
	int64_t n = ((rows - 1) * p->width + out + MAC_STEP - 1) / MAC_STEP * MAC_STEP;
	for (int64_t at = 0; at < n; at = past) {
		past = n - at < PLANES_STRETCH ? n : at + PLANES_STRETCH;
		if (!add_taps(p, first, at, past - at, n, rows * out))
			return false;
	}
	if (p->mac.sum_bytes == 4)
		close_up32(p->sums, rows, p->width, out);
	else
		close_up64(p->sums, rows, p->width, out);
	for (int64_t at = 0; at < rows * out; at = past) {
		past = rows * out - at < PLANES_STRETCH ? rows * out : at + PLANES_STRETCH;
		if (!convolution_finish(p->convolution, p->phase, batch, o, first * out + at, past - at,
					(uint8_t *)p->sums + at * p->mac.sum_bytes, p->staging))
			return false;
	}
	return true;
}

bool planes_run(const struct convolution *convolution, const struct phase *phase)
{
	struct planes p;
	planes_init(&p, convolution, phase);
	if (!set_offsets(&p))
		return false;
	int64_t rows = phase->h.window.out;
	for (int64_t batch = 0; batch < convolution->n; batch++) {
		for (int64_t group = 0; group < convolution->groups; group++) {
			if (!fill_planes(&p, batch, group))
				return false;
			for (int64_t k = 0; k < convolution->n_outputs; k++) {
				int64_t o = group * convolution->n_outputs + k;
				if (!load_weights(&p, o))
					return false;
				for (int64_t y = 0; y < rows; y += p.block)
					if (!run_rows(&p, batch, o, y, rows - y < p.block ? rows - y : p.block))
						return false;
			}
		}
	}
	return true;
}
