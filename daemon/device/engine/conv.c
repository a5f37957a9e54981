/* The plan of a phase and the walk over its tiles. A strip of pixels, small enough for the first cache, meets all
 * weights of its group, which come by once for each strip: 64 products for each byte of them. */
#include "daemon/device/engine/conv.h"

#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/least.h"

/* ---- the plan ---- */

static enum ukernel_type type_of(const struct weighted *weighted)
{
	return weighted->data_bytes == 1     ? UKERNEL_FX8_CONV
	       : weighted->weight_bytes == 2 ? UKERNEL_FX16
					     : UKERNEL_FX16W8;
}

/* Packing a line takes about as long as its products with so many output channels. */
enum { PACK_CHANNELS = 3 };

/* Steps of one tap each need fewer lines, those of any taps are fewer. */
static void choose_steps(struct conv_plan *plan)
{
	const struct convolution *c = plan->convolution;
	int64_t n_terms = plan->ukernel->n_terms;
	int64_t n_taps = plan->phase->h.window.kernel * plan->phase->w.window.kernel;
	int64_t channels = (c->n_inputs + n_terms - 1) / n_terms;
	int64_t merged = (c->n_inputs * n_taps + n_terms - 1) / n_terms;
	int64_t n_planes = flat_n_planes(&plan->flat);
	plan->shape = (struct conv_weights_shape){
		.convolution = c,
		.phase = plan->phase,
		.ukernel = plan->ukernel,
		.merged = n_taps > 1 && merged * (c->n_outputs + PACK_CHANNELS) <
						channels * (n_taps * c->n_outputs + n_planes * PACK_CHANNELS),
	};
	plan->shape.n_steps = plan->shape.merged ? ukernel_whole(plan->ukernel, merged)
						 : ukernel_whole(plan->ukernel, channels) * n_taps;
	conv_pixels_choose(plan);
	plan->shape.by_pixels = plan->pixels != NULL;
	conv_weights_cut(&plan->shape);
	plan->n_strips = plan->pixels ? conv_pixels_n_strips(plan)
				      : (plan->flat.n_pixels + UKERNEL_COLUMNS - 1) / UKERNEL_COLUMNS;
	plan->n_packed = (plan->shape.merged ? merged : channels * n_planes) << plan->ukernel->by_bytes;
	plan->n_beyond = (plan->ukernel->depth - 1) * (plan->shape.merged ? 1 : n_planes);
	plan->n_lines = plan->shape.merged || plan->flat.as_it_lies ? 0 : n_terms * n_planes;
	plan->n_workers = CONV_WORKERS_MAX;
}

/* The way from one packed line to the next: such that many of them do not fall into the same sets of a cache. */
static int64_t packed_bytes(int64_t length)
{
	int64_t lines = (length * UKERNEL_STEP_BYTES + 63) / 64;
	lines = lines > 64 ? (lines + 59) / 64 * 64 + 4 : lines | 1;
	return lines * 64;
}

bool conv_plan_init(struct conv_plan *plan, const struct convolution *convolution, const struct phase *phase)
{
	*plan = (struct conv_plan){.convolution = convolution, .phase = phase};
	if (!flat_init(&plan->flat, phase))
		return false;
	plan->ukernel = ukernel_choose(type_of(&convolution->weighted), convolution->call->isa);
	choose_steps(plan);
	if (plan->ukernel->arrange && plan->shape.n_steps > UKERNEL_STEPS_MAX) {
		plan->ukernel = ukernel_choose(UKERNEL_FX8, convolution->call->isa);
		choose_steps(plan);
	}
	int64_t lines = plan->n_packed >> plan->ukernel->by_bytes;
	if (ukernel_is_wasteful(plan->ukernel, plan->shape.merged ? lines : lines / flat_n_planes(&plan->flat))) {
		plan->ukernel = ukernel_choose_single(type_of(&convolution->weighted), convolution->call->isa);
		choose_steps(plan);
	}
	plan->packed_bytes = packed_bytes(plan->flat.length);
	return plan->packed_bytes <= UINT32_MAX &&
	       plan->n_packed + plan->n_beyond <= UINT32_MAX / plan->packed_bytes;
}

static void *carve(uint8_t **at, size_t *total, int64_t bytes)
{
	uint8_t *piece = *at;
	*total += (size_t)convolution_aligned(bytes);
	if (piece)
		*at += convolution_aligned(bytes);
	return piece;
}

/* Lines of all workers, or where steps are merged of all channels. */
static int64_t lines_bytes(const struct conv_plan *plan)
{
	const struct convolution *c = plan->convolution;
	int64_t n = plan->shape.merged ? c->groups * c->n_inputs * flat_n_planes(&plan->flat)
				       : plan->n_workers * plan->n_lines;
	return n * plan->flat.length * c->weighted.data_bytes;
}

/* Lays out the scratch memory and returns its size. */
static size_t lay_out(struct conv_plan *plan)
{
	const struct convolution *c = plan->convolution;
	uint8_t *at = c->call->scratch;
	size_t total = 0;
	plan->strips = carve(&at, &total, plan->n_strips * (int64_t)sizeof(*plan->strips));
	plan->offsets = carve(&at, &total, plan->shape.n_steps * (int64_t)sizeof(uint32_t));
	plan->totals = carve(&at, &total, c->groups * c->n_outputs * (int64_t)sizeof(int64_t));
	plan->outs = carve(&at, &total, c->groups * c->n_outputs * (int64_t)sizeof(uint8_t *));
	plan->zeros = carve(&at, &total, plan->flat.length * c->weighted.data_bytes);
	plan->lines = carve(&at, &total, lines_bytes(plan));
	plan->data = carve(&at, &total, (c->groups * plan->n_packed + plan->n_beyond) * plan->packed_bytes);
	return total;
}

size_t conv_pack_bytes(struct conv_plan *plan)
{
	return (size_t)convolution_aligned((int64_t)conv_weights_init(&plan->weights, &plan->shape, NULL));
}

bool conv_pack_weights(struct conv_plan *plan, void *pack)
{
	conv_weights_init(&plan->weights, &plan->shape, pack);
	return conv_weights_pack(&plan->weights, &plan->shape);
}

size_t conv_scratch_bytes(struct conv_plan *plan)
{
	return lay_out(plan);
}

/* Of these formats results may not be stored by the micro-kernel: that depends on the weights (conv_store_init).
 */
static bool stores_exactly(const struct conv_plan *plan)
{
	enum { SHIFT_MAX = 30 };
	const struct weighted *weighted = &plan->convolution->weighted;
	const struct accumulator *a = &weighted->accumulator;
	return (!plan->ukernel->store32 && !plan->ukernel->store64) || a->result.bytes != weighted->data_bytes ||
	       a->result.shift < 0 || a->result.shift > SHIFT_MAX ||
	       (weighted->bias_dtype && 8 * weighted->weight_bytes + a->bias_shift >= a->bits);
}

/* Of the tiles of one n. */
static double tile_steps(const struct conv_plan *plan)
{
	enum {
		STORE_OUTPUTS = 8, /* are stored in a step */
		STORE_EXACTLY = 8, /* steps of one that is made by itself */
		STORE_WIDE = 2,	   /* steps of one whose sums come in two parts */
		BLOCK_ROWS = 2,	   /* that are lost of each block: what its columns and its end cost */
	};
	bool is_wide = plan->convolution->weighted.weight_bytes == 2;
	double store = stores_exactly(plan) ? STORE_EXACTLY : is_wide ? STORE_WIDE : 1.0 / STORE_OUTPUTS;
	double pixels = (double)(plan->flat.n_pixels + UKERNEL_COLUMNS);
	double rows = (double)(plan->shape.n_slots + plan->shape.n_blocks * BLOCK_ROWS);
	double terms = (double)plan->shape.n_steps * plan->ukernel->n_terms;
	return (double)plan->convolution->groups * pixels * rows * (terms / plan->ukernel->speed + store);
}

/* What one n takes however small its features are, and what its elements take that are spread one by one. */
static double batch_steps(const struct conv_plan *plan)
{
	enum { BATCH = 1000, OUTPUT = 40, PLANE = 200, TERM = 100, ROW = 16, SPREAD = 2 };
	const struct convolution *c = plan->convolution;
	const struct flat *flat = &plan->flat;
	double inputs = (double)(c->groups * c->n_inputs), outputs = (double)(c->groups * c->n_outputs);
	double steps = BATCH + outputs * OUTPUT, planes = (double)flat_n_planes(flat);
	if (plan->shape.merged)
		steps += (double)(c->groups * plan->n_packed * plan->ukernel->n_terms) * TERM;
	if (flat->as_it_lies)
		return steps + inputs * PLANE;
	steps += inputs * planes * (PLANE + (double)flat->h.extent * ROW);
	return plan->phase->w.window.stride == 1 ? steps : steps + inputs * planes * (double)flat->length * SPREAD;
}

int64_t conv_steps(const struct conv_plan *plan)
{
	double steps =
		(tile_steps(plan) + conv_pack_steps(plan) + batch_steps(plan)) * (double)plan->convolution->n;
	return steps < (double)INT32_MAX ? (int64_t)steps : INT32_MAX;
}

/* ---- tiles ---- */

/* Sums of 32 bits. */
static void sum_steps(struct conv_worker *worker, const struct conv_steps *steps, int32_t *sums)
{
	const struct conv_plan *plan = worker->plan;
	if (plan->pixels)
		conv_pixels_sum(worker, steps, sums);
	else
		plan->ukernel->block(plan->offsets + steps->start, steps->end - steps->start, steps->data,
				     conv_steps_weights(plan, steps), steps->rows, steps->strip->n_columns, sums);
}

/* Those of each part and segment for themselves, high parts first. */
static void sum_parts(struct conv_worker *worker, struct conv_steps steps)
{
	const struct conv_weights *weights = &worker->plan->weights;
	int32_t *to = worker->others;
	for (steps.part = 0; steps.part < weights->head->n_parts; steps.part++) {
		steps.start = 0;
		for (int64_t s = 0; s < weights->head->n_segments; steps.start = weights->ends[s++]) {
			steps.end = weights->ends[s];
			sum_steps(worker, &steps, to);
			to += UKERNEL_PART;
		}
	}
}

/* False where they are no longer wanted. */
static bool sum_wide(struct conv_worker *worker, struct conv_steps steps, int32_t *sums)
{
	const struct conv_plan *plan = worker->plan;
	const struct ukernel *u = plan->ukernel;
	const struct conv_weights_head *head = plan->weights.head;
	bool first = true;
	for (int64_t s = 0; s < head->n_segments; steps.start = plan->weights.ends[s++])
		for (steps.part = 0; steps.part < head->n_parts; steps.part++, first = false) {
			steps.end = plan->weights.ends[s];
			/* There may be as many segments as a client says. */
			if (!first && !conv_team_look(worker, (steps.end - steps.start) * steps.rows))
				return false;
			if (u->block64) {
				u->block64(plan->offsets + steps.start, steps.end - steps.start, steps.data,
					   conv_steps_weights(plan, &steps), steps.rows, steps.strip->n_columns,
					   first, worker->wide);
				continue;
			}
			sum_steps(worker, &steps, sums);
			u->widen(sums, steps.rows, steps.strip->n_columns, steps.part + 1 < head->n_parts ? 8 : 0,
				 first, worker->wide);
		}
	return true;
}

/* The sums of a block, narrow, in parts or wide as the result needs them. False where they are no longer wanted.
 */
static bool sum(struct conv_worker *worker, int64_t number, int64_t group, int64_t block, unsigned rows,
		int32_t *sums)
{
	const struct conv_plan *plan = worker->plan;
	const struct conv_steps steps = {
		.strip = &plan->strips[number].columns,
		.first = plan->strips[number].first,
		.data = plan->data + group * plan->n_packed * plan->packed_bytes +
			(plan->pixels ? 0 : number * UKERNEL_COLUMNS * UKERNEL_STEP_BYTES),
		.group = group,
		.block = block,
		.rows = rows,
		.end = plan->shape.n_steps,
	};
	if (plan->result.narrow)
		sum_steps(worker, &steps, sums);
	else if (plan->result.parts)
		sum_parts(worker, steps);
	else
		return sum_wide(worker, steps, sums);
	return true;
}

/* Results of a strip for blocks of output channels: a store begins with constants, so narrow sums of a few blocks
 * are stored at once. False where they are no longer wanted. */
static bool run_rows(struct conv_worker *worker, int64_t number, int64_t group, int64_t block, int64_t end)
{
	const struct conv_plan *plan = worker->plan;
	int64_t o = group * plan->convolution->n_outputs;
	int64_t first = conv_weights_first(&plan->shape, block), stored = first;
	int64_t most = plan->result.narrow && !plan->pixels ? UKERNEL_OUTPUTS - plan->ukernel->rows : 0;
	for (int64_t next; block < end; first = next) {
		next = conv_weights_first(&plan->shape, block + 1);
		if (!sum(worker, number, group, block++, (unsigned)(next - first),
			 worker->sums + (first - stored) * UKERNEL_COLUMNS))
			return false;
		if (block < end && next - stored <= most)
			continue;
		conv_store(worker, &plan->strips[number], o + stored, (unsigned)(next - stored), worker->sums);
		stored = next;
	}
	return true;
}

/* A part: a tile. */
static int64_t run_tile(struct conv_worker *worker, int64_t part)
{
	const struct conv_plan *plan = worker->plan;
	int64_t group = part / plan->group_tiles, tile = part % plan->group_tiles, elements = 0;
	int64_t number = tile / plan->strip_tiles * plan->tile_strips;
	int64_t end_strip = least(number + plan->tile_strips, plan->n_strips);
	int64_t first = tile % plan->strip_tiles * plan->tile_blocks;
	int64_t end = least(first + plan->tile_blocks, plan->shape.n_blocks);
	int64_t n = conv_weights_first(&plan->shape, end) - conv_weights_first(&plan->shape, first);
	for (; number < end_strip; number++) {
		if (!run_rows(worker, number, group, first, end))
			return -1;
		elements += n * plan->strips[number].columns.n_real;
	}
	return elements;
}

/* Tiles of at most about so many products, which take some ten microseconds, and of a small convolution so few
 * that threads which share them end together. */
static void cut_tiles(struct conv_plan *plan)
{
	enum { TILE_PIECES = 256, TILES = 16 };
	int64_t n_blocks = plan->shape.n_blocks;
	int64_t rows = plan->pixels ? UKERNEL_OUTPUTS : plan->ukernel->rows;
	int64_t products = plan->shape.n_steps * plan->ukernel->n_terms * rows * UKERNEL_COLUMNS;
	int64_t blocks = kernel_piece(plan->convolution->call) * TILE_PIECES / products;
	blocks = least(blocks, n_blocks * plan->n_strips * plan->convolution->groups / TILES);
	blocks = blocks < 1 ? 1 : blocks;
	plan->tile_blocks = least(blocks, n_blocks);
	plan->tile_strips = blocks < n_blocks ? 1 : blocks / n_blocks;
	plan->strip_tiles = (n_blocks + plan->tile_blocks - 1) / plan->tile_blocks;
	plan->group_tiles = (plan->n_strips + plan->tile_strips - 1) / plan->tile_strips * plan->strip_tiles;
}

/* Each false where the rest is no longer wanted. */

static bool find_strips(struct conv_plan *plan)
{
	for (int64_t i = 0; i < plan->n_strips; i++) {
		struct conv_strip *strip = &plan->strips[i];
		if (plan->pixels)
			*strip = conv_pixels_strip(plan, i);
		else
			strip->first = flat_strip(&plan->flat, i * UKERNEL_COLUMNS, &strip->columns);
		if (!conv_look(plan, UKERNEL_COLUMNS))
			return false;
	}
	return true;
}

static bool run_batch(struct conv_plan *plan)
{
	const struct convolution *c = plan->convolution;
	const struct kernel_operand *out = operands_get(c->call, CONVOLUTION_OUT);
	if (!conv_pack(plan))
		return false;
	for (int64_t o = 0; o < c->groups * c->n_outputs; o++) {
		plan->outs[o] = kernel_feature(out, plan->batch, o);
		if (!conv_look(plan, 1))
			return false;
	}
	return conv_team_run(plan, run_tile, c->groups * plan->group_tiles, tile_steps(plan));
}

bool conv_run(struct conv_plan *plan)
{
	const struct convolution *c = plan->convolution;
	lay_out(plan);
	conv_weights_init(&plan->weights, &plan->shape, (void *)c->pack);
	cut_tiles(plan);
	int64_t zeros = plan->flat.length * c->weighted.data_bytes;
	int64_t lines = plan->shape.merged ? lines_bytes(plan) : 0;
	plan->pending = 0;
	if (!conv_store_init(plan) || !conv_pack_offsets(plan) || !find_strips(plan) ||
	    !kernel_clear(c->call, plan->zeros, zeros, &plan->pending) ||
	    !kernel_clear(c->call, plan->lines, lines, &plan->pending))
		return false;
	for (plan->batch = 0; plan->batch < c->n; plan->batch++)
		if (!run_batch(plan))
			return false;
	return true;
}
