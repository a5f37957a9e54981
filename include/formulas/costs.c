/* What one operation costs, from shapes and places alone. Invariant: every product and sum is checked, as shapes
 * and parameters may be a user's. */
#include <npumem/costs.h>

#include <string.h>

#include "include/formulas/tap_pairs.h"

/* As the daemon has it for windows: no sum or product of two such numbers leaves 64 bits. */
#define COSTS_LIMIT INT64_C(0x7fffffff)

/* One computation; `unknown` and `overflow` are remembered, what follows is then without meaning. */
struct costing {
	const struct npumem_cost_operand *operands;
	unsigned n_operands;
	const struct npumem_param *params;
	unsigned n_params;
	bool unknown, overflow;
};

static int64_t times(struct costing *costing, int64_t a, int64_t b)
{
	int64_t product = 0;
	costing->overflow |= __builtin_mul_overflow(a, b, &product);
	return product;
}

static int64_t elements_of(struct costing *costing, const struct npumem_cost_operand *operand)
{
	const struct npumem_dims *shape = &operand->shape;
	if (operand->rows)
		return times(costing, operand->rows, operand->cols);
	return times(costing, times(costing, shape->n, shape->c), times(costing, shape->h, shape->w));
}

/* ---- multiply-accumulates ---- */

static int64_t param_of(const struct costing *costing, int number, unsigned i, int64_t fallback)
{
	for (unsigned k = 0; k < costing->n_params; k++) {
		const struct npumem_param *param = &costing->params[k];
		if (param->number == number && i < param->n_values)
			return param->values[i];
	}
	return fallback;
}

/* The operand in this role. */
static struct npumem_cost_operand operand_of(struct costing *costing, const char *role)
{
	for (unsigned i = 0; i < costing->n_operands; i++)
		if (!strcmp(costing->operands[i].role, role))
			return costing->operands[i];
	costing->unknown = true;
	return (struct npumem_cost_operand){.role = role};
}

/* Elements of all operands whose roles begin so: weights, weights_in, weights0, … */
static int64_t elements_in(struct costing *costing, const char *prefix)
{
	int64_t sum = 0;
	for (unsigned i = 0; i < costing->n_operands; i++)
		if (!strncmp(costing->operands[i].role, prefix, strlen(prefix)))
			costing->overflow |=
				__builtin_add_overflow(sum, elements_of(costing, &costing->operands[i]), &sum);
	return sum;
}

static int64_t pairs(struct costing *costing, struct tap_pairs span)
{
	bool is_right = span.n >= 1 && span.taps >= 1 && span.stride >= 1 && span.dilation >= 1 &&
			span.before >= 0 && span.n <= COSTS_LIMIT && span.taps <= COSTS_LIMIT &&
			span.stride <= COSTS_LIMIT && span.dilation <= COSTS_LIMIT && span.before <= COSTS_LIMIT;
	costing->unknown |= !is_right;
	if (!is_right)
		return 0;
	return tap_pairs(&span);
}

/* Of a transposed convolution the inputs are scattered, of all others the outputs gather. */
static int64_t window_macs(struct costing *costing, bool transposed)
{
	struct npumem_cost_operand in = operand_of(costing, "in"), weights = operand_of(costing, "weights"),
				   out = operand_of(costing, "out");
	const struct npumem_dims *from = transposed ? &in.shape : &out.shape,
				 *to = transposed ? &out.shape : &in.shape;
	if (costing->unknown)
		return 0;
	int64_t h = pairs(costing, (struct tap_pairs){from->h, weights.shape.h,
						      param_of(costing, NPUMEM_PARAM_STRIDE, 0, 1),
						      param_of(costing, NPUMEM_PARAM_DILATION, 0, 1),
						      param_of(costing, NPUMEM_PARAM_PADDING, 0, 0), to->h});
	int64_t w = pairs(costing, (struct tap_pairs){from->w, weights.shape.w,
						      param_of(costing, NPUMEM_PARAM_STRIDE, 1, 1),
						      param_of(costing, NPUMEM_PARAM_DILATION, 1, 1),
						      param_of(costing, NPUMEM_PARAM_PADDING, 2, 0), to->w});
	return times(costing, times(costing, in.shape.n, times(costing, weights.shape.n, weights.shape.c)),
		     times(costing, h, w));
}

/* Every row of `rows` is multiplied with all elements of the weights once. */
static int64_t dense_macs(struct costing *costing, const char *rows, const char *weights)
{
	struct npumem_cost_operand place = operand_of(costing, rows);
	return costing->unknown
		       ? 0
		       : times(costing, place.rows ? place.rows : place.shape.n, elements_in(costing, weights));
}

/* As the daemon counts: kernels that are not here count none. */
static int64_t macs_of(struct costing *costing, int kernel)
{
	switch (kernel) {
	case NPUMEM_KERNEL_CONV2D:
	case NPUMEM_KERNEL_GROUP_CONV2D:
	case NPUMEM_KERNEL_DEPTHWISE_CONV2D:
		return window_macs(costing, false);
	case NPUMEM_KERNEL_TRANSPOSE_CONV2D:
		return window_macs(costing, true);
	case NPUMEM_KERNEL_FULLY_CONNECTED:
	case NPUMEM_KERNEL_LSTM_CELL:
	case NPUMEM_KERNEL_GRU_CELL:
	case NPUMEM_KERNEL_BASIC_RNN_CELL:
		return dense_macs(costing, "in", "weights");
	case NPUMEM_KERNEL_RNN_DENSE:
		return dense_macs(costing, "out", "weights");
	case NPUMEM_KERNEL_MATMUL:
		return dense_macs(costing, "left", "right");
	case NPUMEM_KERNEL_MAC:
	case NPUMEM_KERNEL_PACKED_MAC:
	case NPUMEM_KERNEL_PACKED_MAC_C:
	case NPUMEM_KERNEL_L2_NORMALIZE:
		return elements_in(costing, "out");
	default:
		return 0;
	}
}

int64_t npumem_cost_macs(int kernel, const struct npumem_cost_operand *operands, unsigned n_operands,
			 const struct npumem_param *params, unsigned n_params)
{
	struct costing costing = {operands, n_operands, params, n_params, false, false};
	int64_t macs = macs_of(&costing, kernel);
	if (costing.unknown)
		return NPUMEM_COST_UNKNOWN;
	return costing.overflow ? NPUMEM_COST_OVERFLOW : macs;
}

/* ---- lanes ---- */

enum { LANES_MAX = 128 }; /* eu_bytes / 1, and both are powers of two */

/* Lanes of one NPU that hold elements, counted from the tensor's first byte: where that lies turns all of them. */
struct lanes {
	int64_t n;
	uint8_t marks[LANES_MAX];
};

static void add_turned(struct lanes *to, const struct lanes *from, int64_t by)
{
	for (int64_t i = 0; i < from->n; i++)
		to->marks[(i + by) & (from->n - 1)] |= from->marks[i];
}

/* What `lanes` has, `count` times, `stride` apart. After as many as there are lanes it repeats itself. */
static void repeat(struct lanes *lanes, int64_t count, int64_t stride)
{
	const struct lanes from = *lanes;
	stride &= from.n - 1;
	for (int64_t i = 1; i < count && i < from.n; i++)
		add_turned(lanes, &from, i * stride & (from.n - 1));
}

/* Of a block row whose features have w elements a line. */
static struct lanes lanes_of_row(const struct npumem_place *place, int64_t per_npu, int64_t w)
{
	const struct npumem_dims *stride = &place->stride;
	int64_t packed = place->lanes, n = place->shape.n;
	struct lanes lanes = {.n = per_npu, .marks = {0}};
	n = n < packed * per_npu ? n : packed * per_npu;
	for (int64_t i = 0; i < n; i++)
		lanes.marks[((i / packed * (stride->n & (per_npu - 1)) * packed) + i % packed) & (per_npu - 1)] =
			1;
	repeat(&lanes, place->shape.h, (stride->h & (per_npu - 1)) * packed);
	repeat(&lanes, w, (stride->w & (per_npu - 1)) * packed);
	return lanes;
}

/* Of an NPU with so many block rows, the last of which is `last`. */
static int64_t count(const struct npumem_place *place, const struct lanes *row, const struct lanes *last,
		     int64_t rows)
{
	int64_t mask = row->n - 1, stride = (place->stride.c & mask) * place->lanes, n = 0;
	struct lanes all = {.n = row->n, .marks = {0}};
	if (rows > 1)
		add_turned(&all, row, 0);
	repeat(&all, rows - 1, stride);
	add_turned(&all, last, ((rows - 1) & mask) * stride & mask);
	for (int64_t i = 0; i < all.n; i++)
		n += all.marks[i];
	return n;
}

void npumem_cost_lanes(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t *npus,
		       int64_t *lanes)
{
	int64_t n_npus = geometry->n_npus,
		per_npu = geometry->eu_bytes / (int64_t)npumem_dtype_bytes(place->dtype);
	const struct lanes row = lanes_of_row(place, per_npu, place->shape.w),
			   tail = lanes_of_row(place, per_npu, place->last_w);
	int64_t known_rows = 0, known = 0;
	*npus = place->shape.c < n_npus ? place->shape.c : n_npus;
	*lanes = 0;
	for (int64_t c = 0; c < *npus; c++) {
		int64_t rows = (place->shape.c - 1 - c) / n_npus + 1;
		bool is_last = (place->shape.c - 1) % n_npus == c;
		if (!is_last && rows != known_rows) {
			known = count(place, &row, &row, rows);
			known_rows = rows;
		}
		*lanes += is_last ? count(place, &row, &tail, rows) : known;
	}
}
