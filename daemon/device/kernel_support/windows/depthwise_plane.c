/* With a stride of 1 the rows of a block are one long row of sums, of which those between two rows are dropped.
 * The plane has 16 bits for each element. Each channel's weights prove how many bits its sums need. */
#include "daemon/device/kernel_support/windows/depthwise_plane.h"

#include <assert.h>
#include <string.h>

#include "daemon/device/implementations.h"
#include "daemon/device/least.h"

enum {
	ALIGN = 64,
	TAPS_LOOK = 128,     /* more of them are more than one step for each output */
	BIAS_SHIFT_MAX = 40, /* a bias has at most 16 bits: the sum fits in 64 */
};

static int64_t aligned(int64_t bytes)
{
	return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static bool axis_fits(const struct window_axis *axis)
{
	return axis->before + axis->after <= axis->in + 8;
}

bool depthwise_plane_fits(const struct window *window)
{
	return axis_fits(&window->h) && axis_fits(&window->w) && window->h.kernel <= DEPTHWISE_PLANE_TAPS_MAX &&
	       window->w.kernel <= DEPTHWISE_PLANE_TAPS_MAX &&
	       window->h.kernel * window->w.kernel <= DEPTHWISE_PLANE_TAPS_MAX;
}

/* Lays out the scratch memory and returns its size. */
static size_t lay_out(struct depthwise_plane *p, const struct kernel_call *call, const struct window *window)
{
	const struct window_axis *h = &window->h, *w = &window->w;
	assert(depthwise_plane_fits(window));
	p->rows = h->before + h->in + h->after;
	p->width = w->before + w->in + w->after;
	int64_t piece = kernel_piece(call);
	if (h->kernel * w->kernel > TAPS_LOOK)
		piece = piece * TAPS_LOOK / (h->kernel * w->kernel);
	p->block = piece / p->width;
	p->block = p->block < 1 ? 1 : p->block < h->out ? p->block : h->out;
	p->columns = piece < 1 ? 1 : p->block == 1 && piece < w->out ? piece : w->out;
	int64_t plane = aligned((p->rows * p->width + TAPS_ELEMENTS_PAST) * (int64_t)sizeof(*p->plane));
	int64_t pitch = p->block > 1 ? p->width : p->columns;
	int64_t part = aligned((p->block * pitch + TAPS_SUMS_PAST) * (int64_t)sizeof(*p->part));
	uint8_t *scratch = call->scratch;
	if (scratch) {
		p->plane = (int16_t *)scratch;
		p->part = (int32_t *)(scratch + plane);
		p->sums = (int64_t *)(scratch + plane + part);
	}
	return (size_t)(plane + part + p->block * p->columns * 8);
}

size_t depthwise_plane_scratch_bytes(const struct kernel_call *call, const struct window *window)
{
	struct depthwise_plane plane;
	return lay_out(&plane, call, window);
}

/* Where all of the fast way is there, this is not. */
static void init_lines(struct depthwise_plane *p)
{
	const struct window_axis *h = &p->window->h, *w = &p->window->w;
	const struct implementations *has = &implementations[p->call->isa];
	p->is_flat = h->stride * w->stride == 1 && p->block > 1 && p->width <= DEPTHWISE_LINES_PITCH_MAX;
	p->lines = has->depthwise_fx8 || w->stride > 2 ? NULL : has->depthwise_lines;
	p->pitch = p->is_flat ? p->width : 1;
	for (int64_t i = 0; i < p->pitch; i++) {
		p->real[i] = 0;
		for (int64_t j = 0; j < 8; j++)
			if (!p->is_flat || (i + j) % p->pitch < w->out)
				p->real[i] |= UINT64_C(0xff) << (8 * j);
	}
}

void depthwise_plane_init(struct depthwise_plane *plane, struct kernel_call *call, const struct window *window,
			  const struct weighted *weighted)
{
	const struct window_axis *h = &window->h, *w = &window->w;
	plane->call = call;
	plane->window = window;
	plane->weighted = weighted;
	plane->feature = NULL;
	plane->n_pairs = 0;
	lay_out(plane, call, window);
	plane->finish = (struct row){.in1 = {.data = plane->part, .bytes = sizeof(*plane->part), .mask = -1}};
	plane->n_taps = h->kernel * w->kernel;
	plane->lone = w->dilation > 1;
	for (int64_t y = 0; y < h->kernel; y++)
		for (int64_t x = 0; x < w->kernel; x += plane->lone ? 1 : 2)
			plane->offsets[plane->n_pairs++] = y * h->dilation * plane->width + x * w->dilation;
	init_lines(plane);
	plane->narrow = weighted->accumulator.sum_bytes == sizeof(*plane->part);
}

enum { WIDENED = 8 };
typedef int8_t widened_from __attribute__((vector_size(WIDENED)));
typedef int16_t widened_to __attribute__((vector_size(2 * WIDENED)));

static void widen(const uint8_t *in, int16_t *to)
{
	widened_from from;
	memcpy(&from, in, sizeof(from));
	widened_to words = __builtin_convertvector(from, widened_to);
	memcpy(to, &words, sizeof(words));
}

static void copy_row(const uint8_t *in, unsigned bytes, int64_t n, int16_t *to)
{
	if (bytes == sizeof(*to)) {
		memcpy(to, in, (size_t)n * sizeof(*to));
		return;
	}
	int64_t i = 0;
	for (; i + WIDENED <= n; i += WIDENED)
		widen(in + i, to + i);
	if (i < n && n >= WIDENED)
		widen(in + n - WIDENED, to + n - WIDENED);
	else
		for (; i < n; i++)
			to[i] = ((const int8_t *)in)[i];
}

/* False where it is no longer wanted. What is not of the feature stays zero. */
static bool fill(struct depthwise_plane *p, const uint8_t *in)
{
	const struct window_axis *h = &p->window->h, *w = &p->window->w;
	unsigned bytes = p->weighted->data_bytes;
	int64_t pending = 0, plane = (p->rows * p->width + TAPS_ELEMENTS_PAST) * (int64_t)sizeof(*p->plane);
	if (!p->feature && !kernel_clear(p->call, p->plane, plane, &pending))
		return false;
	int64_t piece = kernel_piece(p->call), stretch = least(w->in, piece);
	for (int64_t y = 0; y < h->in; y++) {
		int16_t *to = p->plane + (h->before + y) * p->width + w->before;
		for (int64_t x = 0; x < w->in; x += stretch) {
			copy_row(in + (y * w->in + x) * bytes, bytes, least(w->in - x, stretch), to + x);
			pending += stretch;
			if (pending >= piece && !kernel_look(p->call, 0, &pending))
				return false;
		}
	}
	p->feature = in;
	return true;
}

/* The largest magnitude of a sum of products, and of whole ones with the bias that p->bias then is. */
static int64_t largest(struct depthwise_plane *p, const uint8_t *weights, int64_t o)
{
	const struct weighted *weighted = p->weighted;
	int64_t total = 0, bias = 0, shift = weighted->accumulator.bias_shift;
	for (int64_t k = 0; k < p->n_taps; k++) {
		int64_t weight = weighted_element(weights, weighted->weight_bytes, k);
		total += weight < 0 ? -weight : weight;
	}
	if (weighted->bias)
		bias = weighted_element(weighted->bias, weighted->weight_bytes, o);
	if (bias && shift >= BIAS_SHIFT_MAX)
		return INT64_MAX;
	p->bias = bias ? bias * ((int64_t)1 << shift) : 0;
	return total * ((int64_t)1 << (8 * weighted->data_bytes - 1)) + (bias < 0 ? -p->bias : p->bias);
}

/* How sums of this magnitude are finished. */
static void finish_by(struct depthwise_plane *p, int64_t most, int64_t drop)
{
	p->finish.to = p->weighted->accumulator.result;
	p->finish.to.shift -= drop;
	row_init(&p->finish, p->call->isa, most);
}

/* What 32 bits hold does not wrap in an accumulator of 32 or 40; split sums are for one of 40, and for a shift
 * that hides the mark. */
static void choose(struct depthwise_plane *p, int64_t most)
{
	const struct accumulator *a = &p->weighted->accumulator;
	int64_t shift = a->result.shift, most_split = (most >> TAPS_DROP) + 2;
	p->sums_are = DEPTHWISE_WIDE;
	if (requantize_fits32(most, shift)) {
		p->sums_are = DEPTHWISE_PLAIN;
		finish_by(p, most, 0);
	} else if (a->bits == 40 && p->n_taps <= TAPS_SPLIT_MAX && shift >= TAPS_DROP + 2 &&
		   requantize_fits32(most_split, shift - TAPS_DROP)) {
		p->sums_are = DEPTHWISE_SPLIT;
		finish_by(p, most_split, TAPS_DROP);
	}
}

static void load_weights(struct depthwise_plane *p, const uint8_t *weights)
{
	unsigned bytes = p->weighted->weight_bytes;
	int64_t wide = p->window->w.kernel, row_end = wide;
	bool split = p->split;
	for (int64_t k = 0, pair = 0; k < p->n_taps; pair++) {
		row_end += k == row_end ? wide : 0;
		bool two = !p->lone && k + 1 < row_end;
		int32_t first = weighted_element(weights, bytes, k),
			second = two ? weighted_element(weights, bytes, k + 1) : 0;
		p->low[pair] = split ? taps_pair(first & 0xff, second & 0xff) : taps_pair(first, second);
		p->high[pair] = taps_pair(first >> 8, second >> 8);
		k += two ? 2 : 1;
	}
}

/* What all outputs of a channel share. */
static void begin_channel(struct depthwise_plane *p, const uint8_t *weights, int64_t o)
{
	choose(p, largest(p, weights, o));
	p->split = p->sums_are == DEPTHWISE_SPLIT;
	if (p->sums_are == DEPTHWISE_WIDE) {
		p->bias = 0;
		p->split = p->weighted->weight_bytes == 2;
	}
	load_weights(p, weights);
}

/* Outputs [x, x + columns) of rows [y, y + n); all of a row, where n is not 1. */
struct outputs {
	int64_t y, n, x, columns;
};

/* Their sums, one row behind the other in `part`. */
static void sum_rows(const struct depthwise_plane *p, struct taps *taps, const struct outputs *at)
{
	const struct window_axis *h = &p->window->h, *w = &p->window->w;
	int64_t wide = at->columns;
	taps->stride = w->stride;
	if (h->stride == 1 && w->stride == 1) {
		taps->in = p->plane + at->y * p->width + at->x;
		taps_row(p->call->isa, taps, (at->n - 1) * p->width + wide, p->part);
		for (int64_t r = 1; r < at->n && wide < p->width; r++)
			memmove(p->part + r * wide, p->part + r * p->width, (size_t)wide * sizeof(*p->part));
		return;
	}
	for (int64_t r = 0; r < at->n; r++) {
		taps->in = p->plane + (at->y + r) * h->stride * p->width + at->x * w->stride;
		taps_row(p->call->isa, taps, wide, p->part + r * wide);
	}
}

/* Adds n of `part` times `unit` to the sums, or sets them. */
static void take_in(struct depthwise_plane *p, int64_t n, int64_t unit, bool add)
{
	if (add)
		for (int64_t i = 0; i < n; i++)
			p->sums[i] += p->part[i] * unit;
	else
		for (int64_t i = 0; i < n; i++)
			p->sums[i] = p->part[i] * unit;
}

/* As many taps at a time as 32 bits hold the sums of. */
static void sum_wide(struct depthwise_plane *p, const struct outputs *at)
{
	enum { PAIRS = TAPS_SPLIT_MAX / 2 };
	int64_t outputs = at->n * at->columns;
	for (int64_t pair = 0; pair < p->n_pairs; pair += PAIRS) {
		int64_t count = p->n_pairs - pair < PAIRS ? p->n_pairs - pair : PAIRS;
		struct taps low = {.n = count, .offsets = p->offsets + pair, .low = p->low + pair};
		struct taps high = {.n = count, .offsets = p->offsets + pair, .low = p->high + pair};
		sum_rows(p, &low, at);
		take_in(p, outputs, 1, pair > 0);
		if (!p->split)
			continue;
		sum_rows(p, &high, at);
		take_in(p, outputs, 256, true);
	}
}

/* Outputs of 8 bits of sums of 32. */
static void make_lines(struct depthwise_plane *p, const struct taps *taps, const struct outputs *at, uint8_t *out)
{
	const struct window_axis *h = &p->window->h, *w = &p->window->w;
	struct depthwise_lines lines = {
		.taps = *taps,
		.n = p->is_flat ? 1 : at->n,
		.step = h->stride * p->width,
		.length = p->is_flat ? (at->n - 1) * p->width + at->columns : at->columns,
		.real = p->real,
		.pitch = p->pitch,
		.way = 8 % p->pitch,
		.to = &p->finish.to,
		.n_outputs = at->n * at->columns,
		.out = out,
	};
	lines.taps.stride = w->stride;
	lines.taps.in = p->plane + at->y * h->stride * p->width + at->x * w->stride;
	p->call->counts.saturated += p->lines(&lines);
}

/* Those of channel o. */
static void make_outputs(struct depthwise_plane *p, int64_t o, const struct outputs *at, uint8_t *out)
{
	int64_t outputs = at->n * at->columns;
	struct kernel_counts *counts = &p->call->counts;
	if (p->sums_are == DEPTHWISE_WIDE && !p->narrow) {
		sum_wide(p, at);
		weighted_finish_channel(p->weighted, p->sums, outputs, o, out, counts);
		return;
	}
	struct taps taps = {.n = p->n_pairs, .offsets = p->offsets, .low = p->low, .low_bias = (int32_t)p->bias};
	if (p->split) {
		taps.high = p->high;
		taps.low_bias = (int32_t)(p->bias & 0xff);
		taps.high_bias = (int32_t)(p->bias >> 8);
	}
	if (p->lines && p->sums_are == DEPTHWISE_PLAIN && p->finish.to.bytes == 1 && p->finish.to.shift >= 0) {
		make_lines(p, &taps, at, out);
		return;
	}
	sum_rows(p, &taps, at);
	if (p->sums_are == DEPTHWISE_WIDE) {
		weighted_finish_channel(p->weighted, p->part, outputs, o, out, counts);
		return;
	}
	p->finish.out = out;
	row_requantize(&p->finish, outputs, &counts->saturated);
}

bool depthwise_plane_run(struct depthwise_plane *plane, int64_t o, const uint8_t *in, const uint8_t *weights,
			 uint8_t *out, int64_t *pending)
{
	int64_t height = plane->window->h.out, width = plane->window->w.out;
	if (plane->feature != in && !fill(plane, in))
		return false;
	begin_channel(plane, weights, o);
	for (int64_t y = 0; y < height; y += plane->block)
		for (int64_t x = 0; x < width; x += plane->columns) {
			struct outputs at = {y, least(height - y, plane->block), x,
					     least(width - x, plane->columns)};
			make_outputs(plane, o, &at,
				     out + (y * width + x) * plane->weighted->accumulator.result.bytes);
			if (!kernel_step_rarely(plane->call, at.n * at.columns, pending))
				return false;
		}
	return true;
}
