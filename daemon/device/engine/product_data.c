/* Rows of data into steps, and what is known of their sums beforehand. */
#include "daemon/device/engine/product_data.h"

#include <string.h>

#include "daemon/device/fixed/rows/folds.h"
#include "daemon/device/least.h"

enum {
	SEGMENT_MIN = 8,      /* steps: widening shorter segments takes longer than two parts */
	DATA_PIECE = 1 << 14, /* elements between two looks, a multiple of any step's */
	STEPS_MAX = 2048,     /* of a block between two looks: half a millisecond without vectors */
};

static void *carve(uint8_t **at, size_t *total, int64_t bytes)
{
	uint8_t *piece = *at;
	bytes = (bytes + 63) / 64 * 64;
	*total += (size_t)bytes;
	if (piece)
		*at += bytes;
	return piece;
}

size_t product_data_init(struct product_data *data, const struct product_weights *weights, int64_t rows_max,
			 void *scratch)
{
	uint8_t *at = scratch;
	size_t total = 0;
	int64_t n_offsets = least(weights->n_steps, STEPS_MAX);
	int64_t last = product_weights_n_strips(weights) - 1;
	*data = (struct product_data){.weights = weights,
				      .part_bytes = rows_max * weights->n_steps * UKERNEL_STEP_BYTES};
	for (unsigned i = 0; i < 2; i++) {
		uint32_t *offsets = carve(&at, &total, n_offsets * (int64_t)sizeof(*offsets));
		uint32_t way =
			(i == 0 ? UKERNEL_COLUMNS : product_weights_width(weights, last)) * UKERNEL_STEP_BYTES;
		for (uint32_t k = 0; offsets && k < n_offsets; k++)
			offsets[k] = k * way;
		data->offsets[i] = offsets;
	}
	data->excess = carve(&at, &total, rows_max * (int64_t)sizeof(*data->excess));
	data->steps = carve(&at, &total, weights->data_bytes * data->part_bytes);
	return total;
}

/* ---- rows ---- */

/* n elements of a row into steps that lie `way` bytes apart. What is missing in the end is zero already. */
static void put(const struct product_weights *weights, const uint8_t *from, int64_t n, uint8_t *to, int64_t way)
{
	uint64_t n_terms = weights->ukernel->n_terms;
	if (weights->data_bytes * n_terms < UKERNEL_STEP_BYTES) {
		/* Bytes that become pairs of 16 bits. */
		for (int64_t i = 0; i < n; i += 2, to += way) {
			const int16_t pair[2] = {(int8_t)from[i], i + 1 < n ? (int8_t)from[i + 1] : 0};
			memcpy(to, pair, sizeof(pair));
		}
		return;
	}
	int64_t bytes = n * weights->data_bytes, whole = bytes / UKERNEL_STEP_BYTES,
		rest = bytes % UKERNEL_STEP_BYTES;
	if (way == UKERNEL_STEP_BYTES)
		memcpy(to, from, (size_t)(whole * UKERNEL_STEP_BYTES));
	else
		for (int64_t k = 0; k < whole; k++)
			memcpy(to + k * way, from + k * UKERNEL_STEP_BYTES, UKERNEL_STEP_BYTES);
	memcpy(to + whole * way, from + whole * UKERNEL_STEP_BYTES, (size_t)rest);
}

/* A group of steps of a row, or less, whose bytes come apart. */
static void put_bytes(const int16_t *from, int64_t n, int64_t high_off, uint8_t *to)
{
	for (int64_t i = 0; i < n; i++) {
		to[i] = (uint8_t)from[i];
		to[high_off + i] = (uint8_t)(from[i] >> 8);
	}
}

/* n elements of a row from step k on, a group of steps after the other where there are groups. */
static void put_groups(const struct product_weights *weights, const uint8_t *from, int64_t n, uint8_t *block,
		       int64_t rows, int64_t row, int64_t k)
{
	const struct ukernel *u = weights->ukernel;
	bool is_single = u->depth == 1;
	int64_t some = is_single ? n : (u->depth >> u->by_bytes) * u->n_terms, way = is_single ? rows : 1;
	for (int64_t i = 0; i < n; i += some, k += u->depth)
		if (u->by_bytes)
			put_bytes((const int16_t *)from + i, least(n - i, some),
				  ukernel_high(u) * UKERNEL_STEP_BYTES, block + ukernel_weight(u, k, rows, row));
		else
			put(weights, from + i * weights->data_bytes, least(n - i, some),
			    block + ukernel_weight(u, k, rows, row), way * UKERNEL_STEP_BYTES);
}

/* Row `row` of `rows` of a block and what is known of it: its excess, and *most grows to its largest absolute
 * element. */
static bool put_row(const struct product_data *data, const struct kernel_call *call, const uint8_t *from,
		    uint8_t *block, int64_t rows, int64_t row, int64_t *excess, int64_t *most, int64_t *pending)
{
	const struct product_weights *weights = data->weights;
	const struct ukernel *u = weights->ukernel;
	int64_t sum = 0;
	memset(block + ukernel_weight(u, weights->n_steps - u->depth, rows, row), 0,
	       u->depth * UKERNEL_STEP_BYTES);
	for (int64_t k = 0; k < weights->terms; k += DATA_PIECE) {
		const uint8_t *at = from + k * weights->data_bytes;
		int64_t n = least(weights->terms - k, DATA_PIECE);
		put_groups(weights, at, n, block, rows, row, k / u->n_terms << u->by_bytes);
		if (weights->data_bytes == 2)
			*most = product_weights_larger(*most, (const int16_t *)at, n);
		if (u->unsigned_data)
			sum += fold_across(FOLD_SUM, call->isa, &(struct fold_rows){at, 1, n, 1}, n);
		if (!kernel_look(call, n, pending))
			return false;
	}
	*excess = 128 * sum;
	return true;
}

/* ---- segments ---- */

static bool split(const struct product_data *data, const struct kernel_call *call)
{
	int16_t *high = (int16_t *)data->steps, *low = (int16_t *)(data->steps + data->part_bytes);
	int64_t n = data->n_rows * data->weights->n_steps * 2, pending = 0, end;
	for (int64_t i = 0; i < n; i = end) {
		end = i + least(n - i, DATA_PIECE);
		for (int64_t j = i; j < end; j++) {
			low[j] = (int8_t)high[j];
			high[j] = (int16_t)((high[j] - low[j]) / 256);
		}
		if (!kernel_look(call, end - i, &pending))
			return false;
	}
	return true;
}

/* Steps for which 32 bits hold what data of this magnitude comes to. */
static int64_t segment_of(const struct product_data *data, int64_t most)
{
	const struct ukernel *u = data->weights->ukernel;
	int64_t weight = u->unsigned_data ? 255 : data->weights->head->most;
	int64_t step = most * weight * u->n_terms;
	return step ? least(INT32_MAX / step / u->depth * u->depth, data->steps_max) : data->steps_max;
}

bool product_data_pack(struct product_data *data, const struct kernel_call *call, const void *rows, int64_t n_rows)
{
	const struct product_weights *weights = data->weights;
	int64_t row_bytes = weights->terms * weights->data_bytes, pending = 0,
		most = weights->data_bytes == 1 ? 128 : 0;
	data->n_rows = n_rows;
	data->steps_max =
		kernel_piece(call) < KERNEL_PIECE ? STEPS_MAX * kernel_piece(call) / KERNEL_PIECE + 1 : STEPS_MAX;
	data->steps_max += -data->steps_max & (weights->ukernel->depth - 1);
	for (int64_t block = 0; block < product_data_n_blocks(data); block++) {
		int64_t first = product_data_first_row(data, block), end = product_data_first_row(data, block + 1);
		uint8_t *to = data->steps + first * weights->n_steps * UKERNEL_STEP_BYTES;
		for (int64_t row = first; row < end; row++)
			if (!put_row(data, call, (const uint8_t *)rows + row * row_bytes, to, end - first,
				     row - first, &data->excess[row], &most, &pending))
				return false;
	}
	data->bound = most * weights->head->most * weights->terms;
	data->segment = segment_of(data, most);
	data->n_parts = 1;
	if (weights->ukernel->block64) {
		data->segment = data->steps_max;
		return true;
	}
	if (weights->data_bytes == 1 ||
	    data->segment >= least(least(SEGMENT_MIN, data->steps_max), weights->n_steps))
		return true;
	data->n_parts = 2;
	data->segment = segment_of(data, 128);
	return split(data, call);
}

/* ---- sums ---- */

static unsigned rows_of(const struct product_data *data, int64_t block)
{
	return (unsigned)(product_data_first_row(data, block + 1) - product_data_first_row(data, block));
}

static const uint8_t *rows_at(const struct product_data *data, int64_t block, int64_t part, int64_t step)
{
	return data->steps + part * data->part_bytes +
	       (product_data_first_row(data, block) * data->weights->n_steps + step * rows_of(data, block)) *
		       UKERNEL_STEP_BYTES;
}

static const uint32_t *offsets_of(const struct product_data *data, int64_t strip)
{
	return data->offsets[strip + 1 == product_weights_n_strips(data->weights)];
}

static void sum(const struct product_data *data, int64_t strip, int64_t block, int64_t part, int64_t step,
		int64_t n_steps, int32_t *sums)
{
	const struct product_weights *weights = data->weights;
	weights->ukernel->block(offsets_of(data, strip), n_steps, product_weights_at(weights, strip, step),
				rows_at(data, block, part, step), rows_of(data, block),
				product_weights_width(weights, strip), sums);
}

void product_data_sums32(const struct product_data *data, int64_t strip, int64_t block, int32_t *sums)
{
	sum(data, strip, block, 0, 0, data->weights->n_steps, sums);
}

void product_data_add64(const struct product_data *data, int64_t strip, int64_t block, int64_t step,
			int64_t n_steps, int32_t *sums, int64_t *wide)
{
	const struct product_weights *weights = data->weights;
	const struct ukernel *u = weights->ukernel;
	unsigned rows = rows_of(data, block), width = product_weights_width(weights, strip);
	if (u->block64) {
		u->block64(offsets_of(data, strip), n_steps, product_weights_at(weights, strip, step),
			   rows_at(data, block, 0, step), rows, width, step == 0, wide);
		return;
	}
	for (int64_t part = 0; part < data->n_parts; part++) {
		sum(data, strip, block, part, step, n_steps, sums);
		u->widen(sums, rows, width, part + 1 < data->n_parts ? 8 : 0, step + part == 0, wide);
	}
}
