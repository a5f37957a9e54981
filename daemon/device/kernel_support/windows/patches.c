/* A row on the left is the window of one output: its inputs by channel, y, x, with zeros where it is padded. A row
 * on the right has the weights of one output channel in the same order. Outputs come in blocks whose windows stay
 * in the second cache while all weights pass. */
#include "daemon/device/kernel_support/windows/patches.h"

#include <string.h>

#include "daemon/device/fixed/dot4.h"
#include "daemon/device/least.h"

enum {
	PATCHES_ELEMENTS = 65536, /* of the windows of a block */
	PATCHES_MIN = 8,	  /* outputs in a block, else the weights pass too often */
	PATCHES_MAX = 256,
	PATCHES_LONG = 1 << 19, /* a window, of which one is a block */
};

struct patches {
	const struct convolution *convolution;
	const struct phase *phase;
	struct dot4 dot4;
	int64_t length;		   /* of a row */
	int64_t n_outputs, block;  /* of a feature, of a block of it */
	int64_t n_quads;	   /* output channels of a group in sets of DOT4_WIDTH */
	int16_t *weights, *window; /* in scratch */
	void *sums, *staging;
};

/* Lays out the scratch memory and returns its size. */
static size_t patches_init(struct patches *p, const struct convolution *convolution, const struct phase *phase)
{
	const struct weighted *weighted = &convolution->weighted;
	*p = (struct patches){
		.convolution = convolution,
		.phase = phase,
		.dot4 = {weighted->accumulator.sum_bytes,
			 weighted->data_bytes == 2 && weighted->weight_bytes == 2},
		.length = (convolution_taps(convolution, phase) + DOT4_LENGTH_STEP - 1) / DOT4_LENGTH_STEP *
			  DOT4_LENGTH_STEP,
		.n_outputs = phase->h.window.out * phase->w.window.out,
		.n_quads = (convolution->n_outputs + DOT4_WIDTH - 1) / DOT4_WIDTH,
	};
	int64_t block = p->length > 0 ? PATCHES_ELEMENTS / p->length : PATCHES_MAX;
	block = p->length > PATCHES_LONG ? 1
		: block < PATCHES_MIN	 ? PATCHES_MIN
		: block > PATCHES_MAX	 ? PATCHES_MAX
					 : block;
	p->block = block < p->n_outputs ? block : p->n_outputs;

	int64_t weights = convolution_aligned(p->n_quads * dot4_right_rows(&p->dot4) * p->length * 2);
	int64_t window = convolution_aligned(p->block * p->length * 2);
	int64_t sums = convolution_aligned(p->block * DOT4_WIDTH * 8);
	uint8_t *scratch = convolution->call->scratch;
	if (scratch) {
		p->weights = (int16_t *)scratch;
		p->window = (int16_t *)(scratch + weights);
		p->sums = scratch + weights + window;
		p->staging = scratch + weights + window + sums;
	}
	return (size_t)(weights + window + sums + p->block * 2);
}

size_t patches_scratch_bytes(const struct convolution *convolution, const struct phase *phase)
{
	struct patches p;
	return patches_init(&p, convolution, phase);
}

/* These fill scratch memory; each false where it is no longer wanted. */

/* The weights of one output channel into row r of a set. */
static bool pack_row(const struct patches *p, int64_t o, int16_t *set, int64_t r, int64_t *pending)
{
	const struct convolution *c = p->convolution;
	const struct phase_axis *h = &p->phase->h, *w = &p->phase->w;
	int64_t k = 0;
	for (int64_t i = 0; i < c->n_inputs; i++) {
		int64_t at = convolution_weight(c, p->phase, o, i);
		for (int64_t y = 0; y < h->window.kernel; y++, at += h->tap_step * w->kernel)
			for (int64_t x = 0; x < w->window.kernel; x++, k++) {
				dot4_put_right(&p->dot4, set, p->length, r, k,
					       (int16_t)weighted_element(c->weights, c->weighted.weight_bytes,
									 at + x * w->tap_step));
				if (!kernel_look(c->call, 1, pending))
					return false;
			}
	}
	return true;
}

/* The weights of a group, in sets of DOT4_WIDTH rows; zeros where there is no such channel, and at the rows' ends.
 */
static bool pack_weights(const struct patches *p, int64_t group)
{
	int64_t set = dot4_right_rows(&p->dot4) * p->length, n = p->convolution->n_outputs, pending = 0;
	for (int64_t o = 0; o < n; o++) {
		int16_t *to = p->weights + o / DOT4_WIDTH * set;
		if (o % DOT4_WIDTH == 0 && !kernel_clear(p->convolution->call, to, set * 2, &pending))
			return false;
		if (!pack_row(p, group * n + o, to, o % DOT4_WIDTH, &pending))
			return false;
	}
	return true;
}

/* to[j * to_step] = from[j * from_step] */
#define SPREAD(name, from_type)                                                                                   \
	static void name(const from_type *from, int64_t from_step, int16_t *to, int64_t to_step, int64_t n)       \
	{                                                                                                         \
		for (int64_t j = 0; j < n; j++)                                                                   \
			to[j * to_step] = from[j * from_step];                                                    \
	}
SPREAD(spread8, int8_t)
SPREAD(spread16, int16_t)

/* Column `x` of the taps, for the outputs [first, end) of row `y`, into the windows at `to`. */
static bool gather_column(const struct patches *p, int64_t batch, int64_t group, int64_t y, int64_t x,
			  int64_t first, int64_t end, int16_t *to, int64_t *pending)
{
	const struct convolution *c = p->convolution;
	const struct window_axis *h = &p->phase->h.window, *w = &p->phase->w.window;
	int64_t from, past, tap, end_tap;
	window_outputs(w, x, &from, &past);
	from = from > first ? from : first;
	past = past < end ? past : end;
	if (from >= past)
		return kernel_look(c->call, 1, pending);
	window_taps(h, y, &tap, &end_tap);
	for (int64_t i = 0; i < c->n_inputs; i++) {
		const void *in =
			convolution_row(c, p->phase, batch, group, i, window_at(h, y, tap), window_at(w, from, x));
		int16_t *row = to + (from - first) * p->length + (i * h->kernel + tap) * w->kernel + x;
		for (int64_t t = 0; t < end_tap - tap; t++, row += w->kernel) {
			int64_t at = t * h->dilation * w->in;
			if (c->weighted.data_bytes == 1)
				spread8((const int8_t *)in + at, w->stride, row, p->length, past - from);
			else
				spread16((const int16_t *)in + at, w->stride, row, p->length, past - from);
			if (!kernel_look(c->call, past - from, pending))
				return false;
		}
		if (!kernel_look(c->call, 1, pending))
			return false;
	}
	return true;
}

/* The windows of outputs [first, first + n) of a feature. */
static bool gather(const struct patches *p, int64_t batch, int64_t group, int64_t first, int64_t n)
{
	const struct window_axis *w = &p->phase->w.window;
	int64_t pending = 0;
	if (!kernel_clear(p->convolution->call, p->window, n * p->length * 2, &pending))
		return false;
	for (int64_t j = first; j < first + n;) {
		int64_t y = j / w->out, x = j % w->out;
		int64_t end = w->out - x < first + n - j ? w->out : x + first + n - j;
		for (int64_t tap = 0; tap < w->kernel; tap++)
			if (!gather_column(p, batch, group, y, tap, x, end, p->window + (j - first) * p->length,
					   &pending))
				return false;
		j += end - x;
	}
	return true;
}

/* The sums of a set of output channels, for n windows; as many products at a time as take about as long as a piece
 * of other work. */
static bool sum(const struct patches *p, const int16_t *set, int64_t n)
{
	enum {
		WIDE = 4
	}; /* products of a step that are made at once, at least, for each of DOT4_WIDTH channels */
	const struct kernel_call *call = p->convolution->call;
	int64_t some = kernel_piece(call) * WIDE / n / DOT4_LENGTH_STEP * DOT4_LENGTH_STEP, pending = 0;
	some = some > 0 ? some : DOT4_LENGTH_STEP;
	memset(p->sums, 0, (size_t)(n * DOT4_WIDTH * p->dot4.sum_bytes));
	for (int64_t k = 0; k < p->length; k += some) {
		int64_t part = p->length - k < some ? p->length - k : some;
		dot4_rows(&p->dot4, p->window + k, n, set + k, p->length, part, p->sums);
		if (!kernel_look(call, part * n / WIDE, &pending))
			return false;
	}
	return true;
}

/* All output channels of a group, for the windows gathered. */
static bool multiply(const struct patches *p, int64_t batch, int64_t group, int64_t first, int64_t n)
{
	const struct convolution *c = p->convolution;
	for (int64_t o = 0; o < c->n_outputs; o++) {
		int64_t lane = o % DOT4_WIDTH;
		if (lane == 0 && !sum(p, p->weights + o / DOT4_WIDTH * dot4_right_rows(&p->dot4) * p->length, n))
			return false;
		if (!convolution_finish(c, p->phase, batch, group * c->n_outputs + o, first, n,
					(uint8_t *)p->sums + lane * n * p->dot4.sum_bytes, p->staging))
			return false;
	}
	return true;
}

/* What it takes to gather the windows of a feature's outputs: columns of taps that meet the input, of each channel
 * anew, and taps and elements. */
static double gather_steps(const struct patches *p)
{
	enum { COLUMN = 60, FEATURE = 80, TAP = 10, ELEMENT = 1 };
	const struct window_axis *h = &p->phase->h.window, *w = &p->phase->w.window;
	int64_t pairs_h = window_pairs(h), pairs_w = window_pairs(w);
	double columns = (double)least(w->kernel, pairs_w), features = (double)p->convolution->n_inputs;
	return (double)h->out * ((double)w->kernel * COLUMN + columns * features * FEATURE) +
	       features * (double)pairs_h * (columns * TAP + (double)pairs_w * ELEMENT);
}

int64_t patches_steps(const struct convolution *convolution, const struct phase *phase)
{
	/* In a step: products, of which AVX2 makes 17, and elements that are cleared; for each: a weight, a
	 * result.
	 */
	enum { PRODUCTS = 8, CLEARED = 8, WEIGHT = 6, RESULT = 16 };
	struct patches p;
	patches_init(&p, convolution, phase);
	double outputs = (double)p.n_outputs, channels = (double)convolution->n_outputs;
	double rows = (double)p.n_quads * (double)dot4_right_rows(&p.dot4);
	double window = (double)p.length * (rows / PRODUCTS + 1.0 / CLEARED);
	double batch = outputs * (window + channels * RESULT) + gather_steps(&p);
	double steps = (double)convolution->n * batch + channels * (double)p.length * WEIGHT;
	steps *= (double)convolution->groups;
	return steps < (double)INT32_MAX ? (int64_t)steps : INT32_MAX;
}

bool patches_run(const struct convolution *convolution, const struct phase *phase)
{
	struct patches p;
	patches_init(&p, convolution, phase);
	for (int64_t group = 0; group < convolution->groups; group++) {
		if (!pack_weights(&p, group))
			return false;
		for (int64_t batch = 0; batch < convolution->n; batch++) {
			for (int64_t first = 0; first < p.n_outputs; first += p.block) {
				int64_t left = p.n_outputs - first, n = left < p.block ? left : p.block;
				if (!gather(&p, batch, group, first, n) || !multiply(&p, batch, group, first, n))
					return false;
			}
		}
	}
	return true;
}
