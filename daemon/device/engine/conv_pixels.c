/* Blocks of some pixels of a row of outputs by a few vectors of output channels. What lies between two rows of a
 * flat line is not summed, nor is a row of taps that lies in the padding above or below: packed as unsigned it is
 * 128 times the sum of the row's weights, which is where sums start from then. */
#include <string.h>

#include "daemon/device/engine/conv_plan.h"

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The first tap that meets input row `row` or a later one from output row y. */
static int64_t first_tap(const struct window_axis *axis, int64_t y, int64_t row)
{
	int64_t way = row + axis->before - y * axis->stride;
	return way <= 0 ? 0 : least((way + axis->dilation - 1) / axis->dilation, axis->kernel);
}

/* Rows of taps that output row y has; *first is the first of them. */
static int64_t n_tap_rows(const struct conv_plan *plan, int64_t y, int64_t *first)
{
	const struct window_axis *axis = &plan->phase->h.window;
	*first = first_tap(axis, y, 0);
	return first_tap(axis, y, axis->in) - *first;
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
	int64_t rows = 0, first;
	/* A segment is all that 32 bits hold of fx8 without a look at the weights. */
	if (!pixels || plan->shape.merged || plan->shape.n_steps > UKERNEL_STEPS_MAX || h->out > SMALL_ROWS)
		return;
	for (int64_t y = 0; y < h->out; y++)
		rows += n_tap_rows(plan, y, &first);
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

/* What sums of a block start from, where only `n` rows of taps from `first` on are summed. */
static void start_from(const struct conv_plan *plan, int64_t group, int64_t block, int64_t first, int64_t n,
		       int32_t *start)
{
	const struct conv_weights_shape *shape = &plan->shape;
	int64_t slots = conv_weights_n_slots(shape, block);
	const int32_t *taps = plan->weights.taps + group * shape->n_slots + conv_weights_first_slot(shape, block);
	memset(start, 0, (size_t)slots * sizeof(*start));
	for (int64_t y = 0; y < plan->phase->h.window.kernel;
	     y++, taps += plan->convolution->groups * shape->n_slots)
		for (int64_t i = 0; i < slots && (y < first || y >= first + n); i++)
			start[i] += 128 * taps[i];
}

void conv_pixels_sum(struct conv_worker *worker, const struct conv_strip *strip, int64_t group, int64_t block)
{
	const struct conv_plan *plan = worker->plan;
	int32_t start[UKERNEL_OUTPUTS] __attribute__((aligned(64)));
	int64_t w = plan->phase->w.window.out, y = strip->first / w, n = strip->columns.n_real, run = least(w, n);
	int64_t steps = plan->shape.n_steps / plan->phase->h.window.kernel;
	int64_t n_blocks = (run + UKERNEL_PIXELS - 1) / UKERNEL_PIXELS, first;
	unsigned slots = (unsigned)conv_weights_n_slots(&plan->shape, block);
	const uint8_t *row = plan->data + group * plan->n_packed * plan->packed_bytes +
			     (y * plan->flat.pitch + strip->first % w) * UKERNEL_STEP_BYTES;
	for (int64_t done = 0; done < n; done += run, y++, row += plan->flat.pitch * UKERNEL_STEP_BYTES) {
		int64_t n_rows = n_tap_rows(plan, y, &first);
		const uint8_t *weights =
			conv_weights_at(&plan->weights, &plan->shape, 0, group, block, first * steps);
		start_from(plan, group, block, first, n_rows, start);
		for (int64_t i = 0; i < n_blocks; i++) {
			int64_t x = run * i / n_blocks;
			plan->pixels->pixels(plan->offsets + first * steps, n_rows * steps,
					     row + x * UKERNEL_STEP_BYTES, weights, start,
					     (unsigned)(run * (i + 1) / n_blocks - x), slots,
					     worker->sums + done + x);
		}
	}
}
