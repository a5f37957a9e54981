/* Blocks of some pixels of a row of outputs by a few vectors of output channels. What lies between two rows of a
 * flat line is not summed, nor is a row of taps that lies in the padding above or below: packed as unsigned it is
 * 128 times the sum of the row's weights, which is where sums start from then. */
#include <assert.h>
#include <string.h>

#include "daemon/device/engine/conv_plan.h"
#include "daemon/device/least.h"

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
	const struct ukernel *u = plan->ukernel,
			     *pixels = ukernel_choose(c->weighted.data_bytes == 1 ? UKERNEL_FX8_PIXELS
										  : UKERNEL_FX16_PIXELS,
						      c->call->isa);
	bool is_packed = pixels && u->n_terms == pixels->n_terms && u->unsigned_data == pixels->unsigned_data &&
			 u->weight_bytes == pixels->weight_bytes && u->depth == 1;
	int64_t columns = (plan->flat.n_pixels + UKERNEL_VECTOR - 1) / UKERNEL_VECTOR * UKERNEL_VECTOR;
	int64_t outputs = (c->n_outputs + UKERNEL_VECTOR - 1) / UKERNEL_VECTOR * UKERNEL_VECTOR;
	int64_t rows = 0;
	/* A segment is all that 32 bits hold of fx8 without a look at the weights. */
	if (!is_packed || plan->shape.merged || plan->shape.n_steps > UKERNEL_STEPS_MAX || h->out > SMALL_ROWS)
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
	assert(plan->pixels);
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

struct work {
	struct conv_worker *worker;
	const struct conv_steps *steps;
};

/* Some rows and columns of pixels, and the taps that all of them have. */
struct pixels {
	int64_t y, end_y, x, end_x;
	struct taps rows, columns;
};

/* What sums start from: the taps that are left out. */
static void start_from(const struct work *work, const struct pixels *pixels, int32_t *start)
{
	const struct conv_plan *plan = work->worker->plan;
	const struct conv_weights_shape *shape = &plan->shape;
	const struct taps *rows = &pixels->rows, *columns = &pixels->columns;
	int64_t block = work->steps->block, slots = conv_weights_n_slots(shape, block);
	int64_t way = plan->convolution->groups * shape->n_slots;
	const int32_t *taps =
		plan->weights.taps + work->steps->group * shape->n_slots + conv_weights_first_slot(shape, block);
	memset(start, 0, (size_t)slots * sizeof(*start));
	for (int64_t y = 0; plan->pixels->unsigned_data && y < plan->phase->h.window.kernel; y++)
		for (int64_t x = 0; x < plan->phase->w.window.kernel; x++, taps += way) {
			bool is_left_out = y < rows->first || y >= rows->first + rows->n || x < columns->first ||
					   x >= columns->first + columns->n;
			for (int64_t i = 0; i < slots && is_left_out; i++)
				start[i] += 128 * taps[i];
		}
}

/* Where they lie in a line of data and in the strip; how many there are. */
static unsigned list(const struct work *work, const struct pixels *pixels, uint32_t *at, uint32_t *to)
{
	const struct conv_plan *plan = work->worker->plan;
	unsigned n = 0;
	for (int64_t y = pixels->y; y < pixels->end_y; y++)
		for (int64_t x = pixels->x; x < pixels->end_x; x++, n++) {
			at[n] = (uint32_t)(y * plan->flat.pitch + x) * UKERNEL_STEP_BYTES;
			to[n] = (uint32_t)(y * plan->phase->w.window.out + x - work->steps->first);
		}
	return n;
}

static void sum_pixels(const struct work *work, const struct pixels *pixels)
{
	const struct conv_plan *plan = work->worker->plan;
	const struct conv_steps *steps = work->steps;
	int64_t w = plan->phase->w.window.kernel, row_steps = plan->shape.n_steps / plan->phase->h.window.kernel;
	int64_t first = pixels->rows.first * row_steps, end = first + pixels->rows.n * row_steps;
	int32_t start[UKERNEL_OUTPUTS] __attribute__((aligned(64)));
	uint32_t at[UKERNEL_COLUMNS], to[UKERNEL_COLUMNS];
	first = first < steps->start ? steps->start : first;
	end = end > steps->end ? steps->end : end;
	struct ukernel_pixels block = {
		.data = steps->data,
		.start = start,
		.n_runs = 1,
		.n_steps = end > first ? end - first : 0,
		.n_columns = (unsigned)conv_weights_n_slots(&plan->shape, steps->block),
	};
	block.way = block.n_steps;
	if (pixels->columns.n < w) {
		first += pixels->columns.first;
		block.n_runs = block.n_steps / w;
		block.n_steps = pixels->columns.n;
		block.way = w;
	}
	block.offsets = plan->offsets + first;
	block.weights =
		conv_weights_at(&plan->weights, &plan->shape, steps->part, steps->group, steps->block, first);
	start_from(work, pixels, start);
	unsigned n = list(work, pixels, at, to), n_blocks = (n + UKERNEL_PIXELS - 1) / UKERNEL_PIXELS;
	for (unsigned i = 0, done = 0; i < n_blocks; i++, done += block.rows) {
		block.rows = n * (i + 1) / n_blocks - done;
		block.at = at + done;
		block.to = to + done;
		plan->pixels->pixels(&block, work->worker->others);
	}
}

/* Takes away what has not all taps in the end, row by row or column by column. */
static void trim(const struct window_axis *axis, int64_t *first, int64_t *end)
{
	while (*first < *end && taps_of(axis, *first).n < axis->kernel)
		++*first;
	while (*first < *end && taps_of(axis, *end - 1).n < axis->kernel)
		--*end;
}

void conv_pixels_sum(struct conv_worker *worker, const struct conv_steps *steps, int32_t *sums)
{
	enum { ROWS_MIN = 4 }; /* a block of fewer pixels waits for its products */
	const struct conv_plan *plan = worker->plan;
	const struct window_axis *h = &plan->phase->h.window, *w = &plan->phase->w.window;
	const struct work work = {worker, steps};
	assert(plan->pixels);
	/* A segment may begin and end within a row of taps. */
	bool is_whole = steps->end - steps->start == plan->shape.n_steps;
	int64_t n = least(w->out, steps->strip->n_real), x = steps->first % w->out, y = steps->first / w->out;
	const struct pixels all = {y, y + steps->strip->n_real / n, x, x + n, {0, h->kernel}, {0, w->kernel}};
	struct pixels middle = all;
	trim(h, &middle.y, &middle.end_y);
	if (is_whole && middle.end_y - middle.y >= ROWS_MIN)
		trim(w, &middle.x, &middle.end_x);
	if (middle.y < middle.end_y && middle.x < middle.end_x)
		sum_pixels(&work, &middle);
	for (y = all.y; y < all.end_y; y++) {
		const struct pixels row = {y, y + 1, all.x, all.end_x, taps_of(h, y), all.columns};
		if (y < middle.y || y >= middle.end_y)
			sum_pixels(&work, &row);
	}
	for (x = all.x; x < all.end_x; x++) {
		const struct pixels column = {middle.y, middle.end_y, x, x + 1, all.rows, taps_of(w, x)};
		if (x < middle.x || x >= middle.end_x)
			sum_pixels(&work, &column);
	}
	plan->pixels->turn(worker->others, steps->strip->n_columns,
			   (unsigned)conv_weights_n_slots(&plan->shape, steps->block), sums);
}
