/* Blocks of some pixels of a row of outputs by a few vectors of output channels. What lies between two rows of a
 * flat line is not summed, nor is a row of taps that lies in the padding above or below: packed as unsigned it is
 * 128 times the sum of the row's weights, which is where sums start from then. */
#include <string.h>

#include "daemon/device/engine/conv_plan.h"

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Taps [first, first + n) of an axis. */
struct taps {
	int64_t first, n;
};

/* The first tap that meets input `in` or a later one from output `out`. */
static int64_t first_tap(const struct window_axis *axis, int64_t out, int64_t in)
{
	int64_t way = in + axis->before - out * axis->stride;
	if (way <= 0)
		return 0;
	return least(axis->dilation == 1 ? way : (way + axis->dilation - 1) / axis->dilation, axis->kernel);
}

/* Those of an output that do not lie in the padding. */
static struct taps taps_of(const struct window_axis *axis, int64_t out)
{
	int64_t first = first_tap(axis, out, 0);
	return (struct taps){first, first_tap(axis, out, axis->in) - first};
}

void conv_pixels_choose(struct conv_plan *plan)
{
	enum {
		/* Fewer rows than there are registers for leave some of a block's time unused. */
		LESS = 8,
		MORE = 9,
		SMALL_ROWS = 256, /* of outputs: of more, what lies between rows is little */
	};
	const struct convolution *c = plan->convolution;
	const struct window_axis *h = &plan->phase->h.window, *w = &plan->phase->w.window;
	bool is_fx8 = c->weighted.data_bytes == 1;
	const struct ukernel *pixels = is_fx8 ? ukernel_choose(UKERNEL_FX8_PIXELS, c->call->isa) : NULL;
	int64_t columns = (plan->flat.n_pixels + UKERNEL_VECTOR - 1) / UKERNEL_VECTOR * UKERNEL_VECTOR;
	int64_t outputs = (c->n_outputs + UKERNEL_VECTOR - 1) / UKERNEL_VECTOR * UKERNEL_VECTOR;
	int64_t rows = 0;
	/* A segment is all that 32 bits hold of fx8 without a look at the weights. */
	if (!pixels || plan->shape.merged || plan->shape.n_steps > UKERNEL_STEPS_MAX || h->out > SMALL_ROWS)
		return;
	for (int64_t y = 0; y < h->out; y++)
		rows += taps_of(h, y).n;
	if (outputs * rows * w->out * MORE < c->n_outputs * columns * h->kernel * LESS)
		plan->pixels = pixels;
}

static int64_t pieces_of_row(const struct conv_plan *plan)
{
	return (plan->phase->w.window.out + UKERNEL_COLUMNS - 1) / UKERNEL_COLUMNS;
}

static int64_t rows_of_strip(const struct conv_plan *plan)
{
	int64_t rows = UKERNEL_COLUMNS / plan->phase->w.window.out;
	return rows ? rows : 1;
}

int64_t conv_pixels_n_strips(const struct conv_plan *plan)
{
	int64_t rows = rows_of_strip(plan);
	return (plan->phase->h.window.out + rows - 1) / rows * pieces_of_row(plan);
}

struct conv_strip conv_pixels_strip(const struct conv_plan *plan, int64_t i)
{
	int64_t h = plan->phase->h.window.out, w = plan->phase->w.window.out;
	int64_t n_pieces = pieces_of_row(plan), rows = rows_of_strip(plan);
	int64_t y = i / n_pieces * rows, piece = i % n_pieces, x = w * piece / n_pieces;
	int64_t n = (w * (piece + 1) / n_pieces - x) * least(rows, h - y);
	return (struct conv_strip){
		.columns = {~UINT64_C(0) >> (UKERNEL_COLUMNS - n), (unsigned)n, (unsigned)n},
		.first = y * w + x,
	};
}

/* ---- sums ---- */

/* A strip and a block. */
struct work {
	struct conv_worker *worker;
	const struct conv_strip *strip;
	int64_t group, block;
};

/* Pixels side by side, or below each other, and the taps that all of them have. */
struct pixels {
	int64_t y, x, n;
	bool down;
	struct taps rows, columns;
};

/* What sums start from: the taps that are left out. */
static void start_from(const struct work *work, const struct pixels *pixels, int32_t *start)
{
	const struct conv_plan *plan = work->worker->plan;
	const struct conv_weights_shape *shape = &plan->shape;
	int64_t slots = conv_weights_n_slots(shape, work->block);
	const int32_t *taps =
		plan->weights.taps + work->group * shape->n_slots + conv_weights_first_slot(shape, work->block);
	memset(start, 0, (size_t)slots * sizeof(*start));
	for (int64_t y = 0; y < plan->phase->h.window.kernel; y++)
		for (int64_t x = 0; x < plan->phase->w.window.kernel;
		     x++, taps += plan->convolution->groups * shape->n_slots) {
			bool is_left_out = y < pixels->rows.first || y >= pixels->rows.first + pixels->rows.n ||
					   x < pixels->columns.first ||
					   x >= pixels->columns.first + pixels->columns.n;
			for (int64_t i = 0; i < slots && is_left_out; i++)
				start[i] += 128 * taps[i];
		}
}

/* Any number of pixels, in blocks. */
static void sum_pixels(const struct work *work, const struct pixels *pixels)
{
	const struct conv_plan *plan = work->worker->plan;
	int64_t out = plan->phase->w.window.out, w = plan->phase->w.window.kernel;
	int64_t row_steps = plan->shape.n_steps / plan->phase->h.window.kernel;
	int64_t first = pixels->rows.first * row_steps + pixels->columns.first;
	int64_t pitch = plan->flat.pitch, at = pixels->y * pitch + pixels->x;
	int64_t n_blocks = (pixels->n + UKERNEL_PIXELS - 1) / UKERNEL_PIXELS;
	const uint8_t *data = plan->data + work->group * plan->n_packed * plan->packed_bytes;
	int32_t start[UKERNEL_OUTPUTS] __attribute__((aligned(64)));
	int32_t *sums = work->worker->sums + pixels->y * out + pixels->x - work->strip->first;
	struct ukernel_pixels block = {
		.offsets = plan->offsets + first,
		.weights = conv_weights_at(&plan->weights, &plan->shape, 0, work->group, work->block, first),
		.start = start,
		.n_runs = pixels->rows.n * row_steps / w,
		.n_steps = pixels->columns.n,
		.way = w,
		.pixel_bytes = (pixels->down ? pitch : 1) * UKERNEL_STEP_BYTES,
		.pixel_sums = pixels->down ? out : 1,
		.n_columns = (unsigned)conv_weights_n_slots(&plan->shape, work->block),
	};
	if (pixels->columns.n == w) {
		block.n_steps = block.way = block.n_runs * w;
		block.n_runs = 1;
	}
	start_from(work, pixels, start);
	for (int64_t i = 0, done = 0; i < n_blocks; i++, done += block.rows) {
		block.rows = (unsigned)(pixels->n * (i + 1) / n_blocks - done);
		block.data = data + at * UKERNEL_STEP_BYTES + done * block.pixel_bytes;
		plan->pixels->pixels(&block, sums + done * block.pixel_sums);
	}
}

/* Rows [*first, *end) of a strip that have all rows of taps, and columns [*left, *right) that have all columns.
 * False where it is not worth while to sum other columns by themselves. */
static bool find_middle(const struct conv_plan *plan, int64_t *first, int64_t *end, int64_t *left, int64_t *right)
{
	enum { ROWS_MIN = 4 }; /* a block of fewer rows waits for its products */
	const struct window_axis *h = &plan->phase->h.window, *w = &plan->phase->w.window;
	while (*first < *end && taps_of(h, *first).n < h->kernel)
		++*first;
	while (*first < *end && taps_of(h, *end - 1).n < h->kernel)
		--*end;
	while (*left < *right && taps_of(w, *left).n < w->kernel)
		++*left;
	while (*left < *right && taps_of(w, *right - 1).n < w->kernel)
		--*right;
	return *end - *first >= ROWS_MIN && *right > *left;
}

void conv_pixels_sum(struct conv_worker *worker, const struct conv_strip *strip, int64_t group, int64_t block)
{
	const struct conv_plan *plan = worker->plan;
	const struct window_axis *h = &plan->phase->h.window, *w = &plan->phase->w.window;
	const struct work work = {worker, strip, group, block};
	int64_t n = least(w->out, strip->columns.n_real), y = strip->first / w->out, x = strip->first % w->out;
	int64_t end = y + strip->columns.n_real / n, first = y, last = end, left = x, right = x + n;
	bool has_middle = n == w->out && find_middle(plan, &first, &last, &left, &right);
	for (; y < end; y++) {
		bool short_row = has_middle && y >= first && y < last;
		struct pixels across = {.y = y, .x = x, .n = n, .rows = taps_of(h, y), .columns = {0, w->kernel}};
		if (short_row) {
			across.x = left;
			across.n = right - left;
		}
		sum_pixels(&work, &across);
	}
	for (; has_middle && x < n; x = x + 1 == left ? right : x + 1) {
		struct pixels down = {first, x, last - first, true, {0, h->kernel}, taps_of(w, x)};
		if (x < left || x >= right)
			sum_pixels(&work, &down);
	}
}
