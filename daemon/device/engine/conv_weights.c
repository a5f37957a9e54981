/* Weights lie [input channel][output channel][tap]; they are read once, in that order, and written where they go.
 */
#include "daemon/device/engine/conv_weights.h"

#include <string.h>

void conv_weights_cut(struct conv_weights_shape *shape)
{
	int64_t most = shape->by_pixels ? UKERNEL_OUTPUTS / UKERNEL_VECTOR : shape->ukernel->rows;
	shape->unit = shape->by_pixels ? UKERNEL_VECTOR : 1;
	int64_t units = (shape->convolution->n_outputs + shape->unit - 1) / shape->unit;
	shape->n_slots = units * shape->unit;
	shape->n_blocks = (units + most - 1) / most;
	shape->block_units = units / shape->n_blocks;
	shape->n_larger = units % shape->n_blocks;
}

static int64_t n_taps(const struct conv_weights_shape *shape)
{
	return shape->phase->h.window.kernel * shape->phase->w.window.kernel;
}

static bool may_split(const struct conv_weights_shape *s)
{
	return s->ukernel->weight_bytes == 2 && s->convolution->weighted.weight_bytes == 2;
}

/* Padding counts only where it is packed as anything but 0. */
static bool has_taps(const struct conv_weights_shape *s)
{
	return s->by_pixels && s->ukernel->unsigned_data;
}

size_t conv_weights_init(struct conv_weights *weights, const struct conv_weights_shape *shape, void *memory)
{
	const struct convolution *c = shape->convolution;
	int64_t rows = c->groups * c->n_outputs, slots = c->groups * shape->n_slots;
	int64_t head = convolution_aligned(sizeof(struct conv_weights_head));
	int64_t sums = convolution_aligned(rows * 8), ends = convolution_aligned(shape->n_steps * 8);
	int64_t taps = convolution_aligned(has_taps(shape) ? slots * n_taps(shape) * 4 : 0);
	int64_t part = convolution_aligned(conv_weights_bytes(shape, c->groups * shape->n_blocks, slots));
	uint8_t *at = memory;
	if (at)
		*weights = (struct conv_weights){.head = (struct conv_weights_head *)at,
						 .sums = (int64_t *)(at + head),
						 .ends = (int64_t *)(at + head + sums),
						 .taps = (int32_t *)(at + head + sums + ends),
						 .steps = at + head + sums + ends + taps,
						 .part_bytes = part};
	return (size_t)(head + sums + ends + taps + part * (may_split(shape) ? 2 : 1));
}

/* Where the weights of a block are put. */
static uint8_t *put_at(const struct conv_weights *weights, const struct conv_weights_shape *s, int64_t group,
		       int64_t block)
{
	int64_t slots = conv_weights_n_slots(s, block), put = slots * s->n_steps * UKERNEL_STEP_BYTES;
	return (uint8_t *)conv_weights_at(weights, s, 0, group, block, 0) + conv_weights_bytes(s, 1, slots) - put;
}

/* One weight and where it goes. */
struct place {
	int64_t step;
	unsigned term;
};

/* Called for each tap of each input channel, so it has no division: n_terms and depth are powers of two. */
static struct place find_place(const struct conv_weights_shape *s, int64_t channel, int64_t y, int64_t x)
{
	int64_t w = s->phase->w.window.kernel, tap = y * w + x;
	int64_t term = s->merged ? channel * n_taps(s) + tap : channel, last = s->ukernel->n_terms - 1;
	int terms = __builtin_ctz(s->ukernel->n_terms), depth = __builtin_ctz(s->ukernel->depth);
	int64_t step = ukernel_step(s->ukernel, term >> terms);
	if (s->by_pixels)
		step = (y * ((s->convolution->n_inputs + last) >> terms) + step) * w + x;
	else if (!s->merged)
		step = (((step >> depth) * n_taps(s) + tap) << depth) + (step & (s->ukernel->depth - 1));
	return (struct place){step, (unsigned)(term & last)};
}

/* A row of a block. */
struct row {
	uint8_t *block;
	int64_t rows, row;
};

static uint8_t *row_step(const struct conv_weights_shape *s, const struct row *row, int64_t k)
{
	return row->block + ukernel_weight(s->ukernel, k, row->rows, row->row);
}

/* These are false where the rest is no longer wanted. */

/* One tap of an input channel, for outputs o to o + n - 1: the first rows of a block. From one output to the next
 * both the weights and the places in the block are at one distance. */
static bool put_tap(const struct conv_weights_shape *s, int64_t o, int64_t n, int64_t i, int64_t y, int64_t x,
		    const struct row *first, int64_t *pending)
{
	const struct convolution *c = s->convolution;
	const struct phase_axis *h = &s->phase->h, *w = &s->phase->w;
	int64_t from = convolution_weight(c, s->phase, o, i) + (y * h->tap_step * w->kernel + x * w->tap_step);
	int64_t from_pitch = h->kernel * w->kernel, to_pitch = s->ukernel->depth * UKERNEL_STEP_BYTES;
	int64_t high_off = s->ukernel->by_bytes ? ukernel_high(s->ukernel) * UKERNEL_STEP_BYTES : 0;
	unsigned from_bytes = c->weighted.weight_bytes, to_bytes = s->ukernel->weight_bytes;
	struct place place = find_place(s, i, y, x);
	uint8_t *to = row_step(s, first, place.step) + place.term * to_bytes;
	for (int64_t row = 0; row < n; row++, from += from_pitch, to += to_pitch) {
		int16_t value = (int16_t)weighted_element(c->weights, from_bytes, from);
		if (high_off)
			to[high_off] = (uint8_t)(value >> 8);
		if (to_bytes == 1)
			*to = (uint8_t)value;
		else
			*(int16_t *)(void *)to = value;
	}
	return kernel_look(c->call, n, pending);
}

static bool put_block(const struct conv_weights_shape *s, int64_t o, int64_t n, const struct row *first,
		      int64_t *pending)
{
	for (int64_t i = 0; i < s->convolution->n_inputs; i++)
		for (int64_t y = 0; y < s->phase->h.window.kernel; y++)
			for (int64_t x = 0; x < s->phase->w.window.kernel; x++)
				if (!put_tap(s, o, n, i, y, x, first, pending))
					return false;
	return true;
}

static int64_t magnitude(int64_t x)
{
	return x < 0 ? -x : x;
}

/* Of a step of one slot: the sum, and that of absolute values. */
static int64_t add_terms(const struct conv_weights_shape *s, const uint8_t *step, int64_t *absolute)
{
	int64_t sum = 0;
	for (unsigned j = 0; j < s->ukernel->n_terms; j++) {
		int64_t w = weighted_element(step, s->ukernel->weight_bytes, j);
		if (s->ukernel->by_bytes)
			w = step[j] + 256 * (int8_t)step[ukernel_high(s->ukernel) * UKERNEL_STEP_BYTES + j];
		sum += w;
		*absolute += magnitude(w);
	}
	return sum;
}

/* What is known of output channel o of all. */
static bool sum_up(struct conv_weights *weights, const struct conv_weights_shape *s, int64_t o,
		   const struct row *row, int64_t *pending)
{
	const struct convolution *c = s->convolution;
	int64_t slot = o / c->n_outputs * s->n_slots + o % c->n_outputs, slots = c->groups * s->n_slots;
	int64_t w = s->phase->w.window.kernel, row_steps = s->n_steps / s->phase->h.window.kernel;
	int64_t absolute = 0, y = 0, x = 0;
	weights->sums[o] = 0;
	for (int64_t k = 0; k < s->n_steps >> s->ukernel->by_bytes; k++) {
		int64_t sum = add_terms(s, row_step(s, row, ukernel_step(s->ukernel, k)), &absolute);
		weights->sums[o] += sum;
		if (has_taps(s)) {
			weights->taps[(y * w + x) * slots + slot] += (int32_t)sum;
			x = x + 1 < w ? x + 1 : 0;
			y += k + 1 == (y + 1) * row_steps;
		}
		if (!kernel_look(c->call, s->ukernel->n_terms, pending))
			return false;
	}
	weights->head->most = absolute > weights->head->most ? absolute : weights->head->most;
	return true;
}

static bool put_all(struct conv_weights *weights, const struct conv_weights_shape *s)
{
	int64_t n = s->convolution->n_outputs, pending = 0;
	int64_t taps_bytes = weights->steps - (uint8_t *)weights->taps;
	if (!kernel_clear(s->convolution->call, weights->taps, taps_bytes + weights->part_bytes, &pending))
		return false;
	for (int64_t group = 0; group < s->convolution->groups; group++)
		for (int64_t block = 0; block < s->n_blocks; block++) {
			int64_t o = conv_weights_first(s, block), n_outputs = conv_weights_first(s, block + 1) - o;
			struct row row = {put_at(weights, s, group, block), conv_weights_n_slots(s, block), 0};
			if (!put_block(s, group * n + o, n_outputs, &row, &pending))
				return false;
			for (; row.row < n_outputs; row.row++)
				if (!sum_up(weights, s, group * n + o + row.row, &row, &pending))
					return false;
		}
	return true;
}

/* ---- segments ---- */

/* How far sums are exact: the sum of absolute weights may be this. */
static int64_t limit(const struct conv_weights_shape *s)
{
	int64_t data_most = s->convolution->weighted.data_bytes == 2 ? 32768
			    : s->ukernel->unsigned_data		     ? 255
								     : 128;
	return INT32_MAX / data_most;
}

/* `*sum` of part p of a step's absolute weights is added to sums[p]. */
static void add_step(const struct conv_weights *weights, const struct conv_weights_shape *s, const uint8_t *step,
		     int64_t sums[2])
{
	for (int64_t p = 0; p < weights->head->n_parts; p++)
		for (unsigned j = 0; j < s->ukernel->n_terms; j++)
			sums[p] += magnitude(
				weighted_element(step + p * weights->part_bytes, s->ukernel->weight_bytes, j));
}

/* The end of a segment from `start` on that no row of a block has to end earlier; *end is what others have. */
static bool block_end(const struct conv_weights *weights, const struct conv_weights_shape *s, const uint8_t *steps,
		      int64_t rows, int64_t start, int64_t *pending, int64_t *end)
{
	for (int64_t row = 0; row < rows; row++) {
		int64_t sums[2] = {0, 0};
		for (int64_t k = start; k < *end; k++) {
			add_step(weights, s, steps + ukernel_weight(s->ukernel, k, rows, row), sums);
			if (sums[0] > limit(s) || sums[1] > limit(s))
				*end = k / s->ukernel->depth * s->ukernel->depth;
			if (!kernel_look(s->convolution->call, s->ukernel->n_terms, pending))
				return false;
		}
	}
	return true;
}

static bool segment_end(const struct conv_weights *weights, const struct conv_weights_shape *s, int64_t start,
			int64_t *pending, int64_t *end)
{
	int64_t left = s->n_steps - start;
	*end = start + (left < UKERNEL_STEPS_MAX ? left : UKERNEL_STEPS_MAX);
	/* Where no whole row may be too much, no part of one is. */
	bool fits = weights->head->n_parts == 1 && !s->ukernel->by_bytes && weights->head->most <= limit(s);
	if (s->ukernel->block64 || fits)
		return true;
	for (int64_t group = 0; group < s->convolution->groups; group++)
		for (int64_t block = 0; block < s->n_blocks; block++) {
			const uint8_t *steps = put_at(weights, s, group, block);
			if (!kernel_look(s->convolution->call, 1, pending) ||
			    !block_end(weights, s, steps, conv_weights_n_slots(s, block), start, pending, end))
				return false;
		}
	return true;
}

/* Ends of all segments. False where it is no longer wanted; n_segments 0 where they would be too short. */
static bool find_segments(struct conv_weights *weights, const struct conv_weights_shape *s)
{
	struct conv_weights_head *head = weights->head;
	int64_t pending = 0, n = 0, end = 0;
	for (int64_t start = 0; start < s->n_steps; start = end) {
		if (!segment_end(weights, s, start, &pending, &end))
			return false;
		bool is_short = end == start || (end < s->n_steps && end < (n + 1) * s->ukernel->segment_min);
		if (may_split(s) && head->n_parts == 1 && is_short) {
			head->n_segments = 0;
			return true;
		}
		weights->ends[n++] = end;
	}
	head->n_segments = n;
	return true;
}

static bool split(struct conv_weights *weights, const struct conv_weights_shape *s)
{
	int16_t *high = (int16_t *)weights->steps, *low = (int16_t *)(weights->steps + weights->part_bytes);
	int64_t pending = 0, n = weights->part_bytes / 2, piece = kernel_piece(s->convolution->call), end;
	for (int64_t i = 0; i < n; i = end) {
		end = n - i < piece ? n : i + piece;
		for (int64_t j = i; j < end; j++) {
			low[j] = (int8_t)high[j];
			high[j] = (int16_t)((high[j] - low[j]) / 256);
		}
		if (!kernel_look(s->convolution->call, end - i, &pending))
			return false;
	}
	return true;
}

static bool arrange(const struct conv_weights *weights, const struct conv_weights_shape *s)
{
	int64_t pending = 0;
	for (int64_t group = 0; s->ukernel->arrange && group < s->convolution->groups; group++)
		for (int64_t block = 0; block < s->n_blocks; block++) {
			int64_t rows = conv_weights_n_slots(s, block);
			s->ukernel->arrange(s->n_steps, (unsigned)rows,
					    (uint8_t *)conv_weights_at(weights, s, 0, group, block, 0));
			if (!kernel_look(s->convolution->call, s->n_steps * rows, &pending))
				return false;
		}
	return true;
}

bool conv_weights_pack(struct conv_weights *weights, const struct conv_weights_shape *shape)
{
	*weights->head = (struct conv_weights_head){.most = 0, .n_parts = 1};
	if (!put_all(weights, shape) || !find_segments(weights, shape))
		return false;
	if (weights->head->n_segments > 0)
		return arrange(weights, shape);
	weights->head->n_parts = 2;
	return split(weights, shape) && find_segments(weights, shape);
}
