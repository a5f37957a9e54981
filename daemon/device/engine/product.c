/* The walk over panels of rows and, in each, over tiles: strips of columns by a few blocks of rows, that threads
 * share. A strip comes from the second cache once for each block, of which it multiplies every row; where it is
 * too long for that cache it comes in stretches, each for all blocks of a tile. */
#include "daemon/device/engine/product.h"

#include <assert.h>
#include <string.h>

#include "daemon/device/engine/product_data.h"
#include "daemon/device/kernel_support/elementwise/elements.h"
#include "daemon/device/kernel_support/operands.h"

enum {
	PIECE_PRODUCTS = 8,    /* that take as long as one step of a plain loop */
	PANEL_BYTES = 1 << 20, /* of a panel's steps, where a block is no more than that */
	PANEL_MOST = 8 << 20,  /* where a tile's rows are more */
	TILE_BLOCKS = 16,
	TILE_ROWS = 96,	     /* whose sums are kept from one stretch to the next */
	STRETCH_STEPS = 512, /* of a strip 128 KiB */
	BLOCK_ROWS = 4,	     /* that a block's lines of weights take as long as */
};
static_assert(TILE_ROWS * UKERNEL_COLUMNS >= PRODUCT_BLOCK, "a block's sums fit");

struct panel {
	const struct product *product;
	const struct kernel_call *call;
	struct product_weights weights;
	struct product_data data;
	struct weighted weighted;
	uint8_t *out;
	int64_t most_bias; /* as the accumulator has it; more than any where it is shifted too far */
	bool narrow;	   /* sums of 32 bits hold everything */
	bool direct;	   /* the micro-kernel's store does it, else fixed/ */
	bool is_small;	   /* of a struct ukernel_result */
	int64_t n_tiles;
	bool shared; /* several threads may run tiles */
	_Atomic int64_t next, saturated, wrapped;
	_Atomic bool stopped;
};

/* What a thread has by itself. */
struct worker {
	_Alignas(64) int32_t sums[PRODUCT_BLOCK];
	_Alignas(64) int64_t kept[TILE_ROWS * UKERNEL_COLUMNS];
	int64_t *wide;		       /* the block's of them */
	int32_t bias[UKERNEL_COLUMNS]; /* of the strip's columns; only where stores are direct */
	/* Of the tile: outputs and products, those that are done, and those that were when it was told. */
	int64_t elements, products, done, told;
	struct kernel_counts counts;
};

static void weights_of(const struct kernel_call *call, const struct product *product, void *pack,
		       struct product_weights *weights)
{
	assert(product->rows > 0 && product->columns > 0);
	assert(product->terms > 0 && product->terms <= ACCUMULATOR_PRODUCTS_MAX);
	product_weights_init(weights, call->isa,
			     npumem_dtype_bytes(operands_get(call, product->roles->data)->dtype),
			     npumem_dtype_bytes(operands_get(call, product->roles->weights)->dtype),
			     product->terms, product->columns, pack);
}

static int64_t panel_rows(const struct product *product, const struct product_weights *weights)
{
	int64_t blocks = PANEL_BYTES / (weights->ukernel->rows * UKERNEL_STEP_BYTES * weights->n_steps);
	int64_t rows = (blocks ? blocks : 1) * weights->ukernel->rows;
	int64_t most = PANEL_MOST / (UKERNEL_STEP_BYTES * weights->n_steps);
	most = most < TILE_ROWS ? most : TILE_ROWS;
	rows = rows < most ? most : rows;
	return rows < product->rows ? rows : product->rows;
}

size_t product_scratch_bytes(const struct kernel_call *call, const struct product *product)
{
	struct product_weights weights;
	struct product_data data;
	weights_of(call, product, NULL, &weights);
	return product_data_init(&data, &weights, panel_rows(product, &weights), NULL);
}

size_t product_pack_bytes(const struct kernel_call *call, const struct product *product)
{
	struct product_weights weights;
	weights_of(call, product, NULL, &weights);
	return product_weights_bytes(&weights);
}

bool product_pack(const struct kernel_call *call, const struct product *product, void *pack)
{
	struct product_weights weights;
	weights_of(call, product, pack, &weights);
	return product_weights_pack(&weights, call, operands_get(call, product->roles->weights)->data);
}

/* Of tiles over so many rows. A line of weights is loaded for each block of rows, and sums are stored. */
static double tile_steps(const struct product *product, const struct product_weights *weights, int64_t n_rows)
{
	double columns = (double)product->columns + UKERNEL_COLUMNS, rows = (double)n_rows;
	double terms = (double)weights->n_steps * weights->ukernel->n_terms;
	double blocks = (double)(n_rows / weights->ukernel->rows + 1) * BLOCK_ROWS;
	return (rows + blocks) * columns * terms / weights->ukernel->speed + rows * columns;
}

int64_t product_steps(const struct kernel_call *call, const struct product *product)
{
	struct product_weights weights;
	weights_of(call, product, NULL, &weights);
	double packed = (double)product->rows * (double)weights.n_steps * weights.ukernel->n_terms;
	double steps = tile_steps(product, &weights, product->rows) + packed;
	return steps < (double)INT32_MAX ? (int64_t)steps : INT32_MAX;
}

/* ---- results ---- */

/* Which way the sums of a panel take. */
static void choose_store(struct panel *panel)
{
	struct accumulator *a = &panel->weighted.accumulator;
	const struct ukernel *u = panel->weights.ukernel;
	int64_t most = panel->data.bound + panel->most_bias, shift = a->result.shift;
	panel->narrow = product_data_is_narrow(&panel->data, panel->most_bias);
	panel->is_small = ukernel_is_small(&a->result, most);
	a->cannot_wrap = most < INT64_C(1) << (a->bits - 1);
	a->sum_bytes = panel->narrow ? 4 : 8;
	if (panel->narrow)
		panel->direct =
			u->store32 && shift >= 0 && shift <= 30 && most + (INT64_C(1) << shift) <= INT32_MAX;
	else
		panel->direct = u->store64 && panel->weighted.data_bytes == 2 && shift >= 0 && shift <= 60 &&
				a->cannot_wrap;
	/* A micro-kernel stores its data's type. */
	panel->direct &= a->result.bytes == panel->weighted.data_bytes;
}

static void load_bias(const struct panel *panel, struct worker *worker, int64_t first, unsigned n)
{
	const struct weighted *weighted = &panel->weighted;
	memset(worker->bias, 0, sizeof(worker->bias));
	if (panel->most_bias)
		elements_load32(weighted->bias_dtype, weighted->bias, first, n, worker->bias);
}

static void add_bias(const struct panel *panel, struct worker *worker, unsigned rows, unsigned width)
{
	unsigned shift = (unsigned)panel->weighted.accumulator.bias_shift;
	if (!panel->most_bias)
		return;
	for (unsigned row = 0; row < rows; row++) {
		uint32_t *sums = (uint32_t *)worker->sums + row * UKERNEL_COLUMNS;
		int64_t *wide = worker->wide + row * UKERNEL_COLUMNS;
		if (panel->narrow)
			for (unsigned i = 0; i < width; i++)
				sums[i] += (uint32_t)worker->bias[i] << shift;
		else
			for (unsigned i = 0; i < width; i++)
				wide[i] += (int64_t)((uint64_t)(int64_t)worker->bias[i] << shift);
	}
}

static void store_direct(const struct panel *panel, struct worker *worker, int64_t strip, unsigned rows,
			 const int64_t *excess, uint8_t *const *to)
{
	const struct ukernel *u = panel->weights.ukernel;
	unsigned n = product_weights_real(&panel->weights, strip),
		 width = product_weights_width(&panel->weights, strip);
	const struct ukernel_strip columns = {~UINT64_C(0) >> (UKERNEL_COLUMNS - n), width, n};
	int64_t totals[UKERNEL_ROWS_MAX];
	for (unsigned row = 0; row < rows; row++)
		totals[row] = -excess[row];
	const struct ukernel_result result = {&panel->weighted.accumulator.result, totals, to, 0, panel->is_small};
	add_bias(panel, worker, rows, width);
	worker->counts.saturated += panel->narrow ? u->store32(&result, &columns, rows, worker->sums)
						  : u->store64(&result, &columns, rows, worker->wide);
}

static void store_exact(const struct panel *panel, struct worker *worker, int64_t strip, unsigned rows,
			const int64_t *excess, uint8_t *const *to)
{
	unsigned n = product_weights_real(&panel->weights, strip);
	for (unsigned row = 0; row < rows; row++) {
		int32_t *sums = worker->sums + row * UKERNEL_COLUMNS;
		int64_t *wide = worker->wide + row * UKERNEL_COLUMNS;
		for (unsigned i = 0; i < n && excess[row]; i++)
			if (panel->narrow)
				sums[i] = (int32_t)((uint32_t)sums[i] - (uint32_t)excess[row]);
			else
				wide[i] -= excess[row];
		weighted_finish_channels(&panel->weighted, panel->narrow ? (void *)sums : wide, n,
					 strip * UKERNEL_COLUMNS, to[row], &worker->counts);
	}
}

/* ---- tiles ---- */

/* After n more products of a tile. False where the rest is no longer wanted. */
static bool products_done(const struct panel *panel, struct worker *worker, int64_t n)
{
	worker->done += n;
	if ((worker->done - worker->told) / PIECE_PRODUCTS < kernel_piece(panel->call))
		return true;
	worker->told = worker->done;
	return panel->shared ? kernel_wanted(panel->call->progress)
			     : kernel_part(panel->call, worker->elements, worker->done, worker->products);
}

/* Steps of a block and a strip, added to what was summed of them before. */
static bool add_block(const struct panel *panel, struct worker *worker, int64_t strip, int64_t block, int64_t step,
		      int64_t end)
{
	const struct product_data *data = &panel->data;
	int64_t rows = product_data_first_row(data, block + 1) - product_data_first_row(data, block);
	int64_t products = rows * product_weights_width(&panel->weights, strip);
	if (panel->narrow) {
		product_data_sums32(data, strip, block, worker->sums);
		return products_done(panel, worker, products * panel->weights.n_steps);
	}
	for (int64_t n; step < end; step += n) {
		n = end - step < data->segment ? end - step : data->segment;
		product_data_add64(data, strip, block, step, n, worker->sums, worker->wide);
		if (!products_done(panel, worker, products * n))
			return false;
	}
	return true;
}

static void store_block(const struct panel *panel, struct worker *worker, int64_t strip, int64_t block)
{
	const struct product_data *data = &panel->data;
	int64_t first = product_data_first_row(data, block);
	unsigned rows = (unsigned)(product_data_first_row(data, block + 1) - first);
	uint8_t *to[UKERNEL_ROWS_MAX];
	for (unsigned row = 0; row < rows; row++)
		to[row] = panel->out + ((first + row) * panel->product->columns + strip * UKERNEL_COLUMNS) *
					       panel->weighted.accumulator.result.bytes;
	(panel->direct ? store_direct : store_exact)(panel, worker, strip, rows, data->excess + first, to);
}

/* Blocks of a strip, stretch by stretch, and their results. */
static bool run_blocks(const struct panel *panel, struct worker *worker, int64_t strip, int64_t first, int64_t end)
{
	int64_t n_steps = panel->weights.n_steps, way = panel->narrow ? n_steps : STRETCH_STEPS;
	for (int64_t step = 0; step < n_steps; step += way) {
		int64_t stop = step + way < n_steps ? step + way : n_steps;
		worker->wide = worker->kept;
		for (int64_t block = first, row, next; block < end; block++, worker->wide += next - row) {
			row = product_data_first_row(&panel->data, block) * UKERNEL_COLUMNS;
			next = product_data_first_row(&panel->data, block + 1) * UKERNEL_COLUMNS;
			if (!add_block(panel, worker, strip, block, step, stop))
				return false;
			if (stop == n_steps)
				store_block(panel, worker, strip, block);
		}
	}
	return true;
}

/* Of blocks before `end` the first that is not to be run with `block`: sums are kept of so many rows only, and of
 * one block at a time where one stretch is all. */
static int64_t blocks_end(const struct panel *panel, int64_t block, int64_t end)
{
	int64_t first = product_data_first_row(&panel->data, block++);
	if (panel->narrow || panel->weights.n_steps <= STRETCH_STEPS)
		return block;
	while (block < end && product_data_first_row(&panel->data, block + 1) - first <= TILE_ROWS)
		block++;
	return block;
}

/* False where the rest is no longer wanted. */
static bool run_tile(const struct panel *panel, struct worker *worker, int64_t tile)
{
	const struct product_data *data = &panel->data;
	int64_t n_strips = product_weights_n_strips(&panel->weights), strip = tile % n_strips;
	int64_t n_blocks = product_data_n_blocks(data), first = tile / n_strips * TILE_BLOCKS;
	int64_t end = first + TILE_BLOCKS < n_blocks ? first + TILE_BLOCKS : n_blocks;
	int64_t rows = product_data_first_row(data, end) - product_data_first_row(data, first);
	unsigned n = product_weights_real(&panel->weights, strip);
	worker->elements = n * rows;
	worker->products = rows * product_weights_width(&panel->weights, strip) * panel->weights.n_steps;
	worker->done = worker->told = 0;
	if (panel->direct)
		load_bias(panel, worker, strip * UKERNEL_COLUMNS, n);
	for (int64_t block = first, next; block < end; block = next) {
		next = blocks_end(panel, block, end);
		if (!run_blocks(panel, worker, strip, block, next))
			return false;
	}
	return true;
}

/* As kernel_part_done. */
static bool tile_done(const struct panel *panel, const struct worker *worker)
{
	return panel->shared ? kernel_part_done(panel->call, worker->elements)
			     : kernel_step(panel->call, worker->elements);
}

static void work(void *arg, unsigned number)
{
	struct panel *panel = arg;
	(void)number;
	struct worker worker;
	int64_t tile;
	worker.counts = (struct kernel_counts){.saturated = 0};
	while (!panel->stopped && (tile = atomic_fetch_add(&panel->next, 1)) < panel->n_tiles) {
		if (!run_tile(panel, &worker, tile)) {
			panel->stopped = true;
		} else if (!tile_done(panel, &worker)) {
			if (kernel_cancelled(panel->call->progress))
				panel->stopped = true;
			break;
		}
	}
	atomic_fetch_add(&panel->saturated, worker.counts.saturated);
	atomic_fetch_add(&panel->wrapped, worker.counts.wrapped);
}

/* ---- panels ---- */

static bool run_panel(struct panel *panel, const uint8_t *rows, int64_t n_rows)
{
	if (!product_data_pack(&panel->data, panel->call, rows, n_rows))
		return false;
	choose_store(panel);
	int64_t n_groups = (product_data_n_blocks(&panel->data) + TILE_BLOCKS - 1) / TILE_BLOCKS;
	panel->n_tiles = product_weights_n_strips(&panel->weights) * n_groups;
	panel->next = 0;
	double steps = tile_steps(panel->product, &panel->weights, n_rows);
	panel->shared = panel->n_tiles > 1 && kernel_is_shared(panel->call, steps);
	if (panel->shared)
		kernel_share(panel->call, steps, work, panel);
	else
		work(panel, 0);
	return !panel->stopped;
}

void product_run(struct kernel_call *call, const struct product *product)
{
	struct panel panel = {.product = product, .call = call};
	call->counts = (struct kernel_counts){.macs = 0};
	weights_of(call, product, (void *)call->pack, &panel.weights);
	int64_t step = panel_rows(product, &panel.weights);
	product_data_init(&panel.data, &panel.weights, step, call->scratch);
	weighted_init(&panel.weighted, call, product->roles, product->terms);
	panel.most_bias = weighted_most_bias(&panel.weighted, call->isa, product->columns);
	/* Zeros, which may be shifted further than any sum is wide. */
	if (!panel.most_bias)
		panel.weighted.bias = NULL;
	uint8_t *out = operands_get(call, product->roles->out)->data;
	const uint8_t *rows = operands_get(call, product->roles->data)->data;
	unsigned bytes = panel.weighted.data_bytes;
	for (int64_t row = 0; row < product->rows; row += step) {
		panel.out = out + row * product->columns * panel.weighted.accumulator.result.bytes;
		int64_t n = product->rows - row < step ? product->rows - row : step;
		if (!run_panel(&panel, rows + row * product->terms * bytes, n))
			return;
	}
	call->counts = (struct kernel_counts){.saturated = panel.saturated,
					      .wrapped = panel.wrapped,
					      .macs = product->rows * product->terms * product->columns};
}
