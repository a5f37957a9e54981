/* Costs of operations from the network alone. Invariant: every product and sum is checked, as shapes and
 * parameters are the user's; a network that the daemon would refuse may have no costs, but never wrong memory. */
#include "client/ctl/core/network/costs.h"

#include <stdlib.h>
#include <string.h>

#include "client/ctl/core/roles.h"

/* As the daemon has it for windows: no sum or product of two such numbers leaves 64 bits. */
#define COSTS_LIMIT INT64_C(0x7fffffff)

/* One computation; `unknown` and `overflow` are remembered, what follows is then without meaning. */
struct costing {
	const struct network *network;
	const struct npumem_geometry *geometry;
	const struct network_operation *operation;
	bool unknown, overflow;
};

static int64_t times(struct costing *costing, int64_t a, int64_t b)
{
	int64_t product = 0;
	costing->overflow |= __builtin_mul_overflow(a, b, &product);
	return product;
}

static int64_t plus(struct costing *costing, int64_t a, int64_t b)
{
	int64_t sum = 0;
	costing->overflow |= __builtin_add_overflow(a, b, &sum);
	return sum;
}

bool costs_has(const struct network_operation *operation)
{
	switch (operation->kind) {
	case NETWORK_WRITE:
	case NETWORK_FILL:
	case NETWORK_COPY:
	case NETWORK_RUN:
	case NETWORK_READ:
		return true;
	default:
		return false;
	}
}

/* ---- tensors ---- */

static bool lies_within(int64_t from, int64_t to, int64_t extent)
{
	return from >= 0 && from < to && to <= extent;
}

static int64_t elements_of(struct costing *costing, const struct npumem_place *place)
{
	const struct npumem_dims *shape = &place->shape;
	if (place->rows)
		return times(costing, place->rows, place->cols);
	costing->unknown |= shape->n < 1 || shape->c < 1 || shape->h < 1 || shape->w < 1;
	return times(costing, times(costing, shape->n, shape->c), times(costing, shape->h, shape->w));
}

/* A tensor's type and shape, where these are known and of a view right. */
static void array_of(struct costing *costing, int tensor, struct npumem_place *place)
{
	const struct network *network = costing->network;
	const struct network_tensor *one = &network->tensors[tensor];
	costing->unknown |= !network_array(network, tensor, place);
	if (costing->unknown || one->base == NETWORK_NONE)
		return;
	struct npumem_place base;
	array_of(costing, one->base, &base);
	/* A view of a matrix goes by channels, which only the device has. */
	costing->unknown |= base.rows != 0;
	if (one->is_slice)
		costing->unknown |= !lies_within(one->from.n, one->to.n, base.shape.n) ||
				    !lies_within(one->from.c, one->to.c, base.shape.c) ||
				    !lies_within(one->from.h, one->to.h, base.shape.h) ||
				    !lies_within(one->from.w, one->to.w, base.shape.w);
	else
		costing->unknown |=
			one->shape.c != base.shape.c || elements_of(costing, place) != elements_of(costing, &base);
}

static int64_t bytes_of(struct costing *costing, int tensor)
{
	struct npumem_place place;
	array_of(costing, tensor, &place);
	return costing->unknown ? 0
				: times(costing, elements_of(costing, &place), npumem_dtype_bytes(place.dtype));
}

/* Element `at` of a view as one of its root. */
static void find_in_root(const struct network *network, int tensor, struct npumem_dims *at)
{
	for (; network->tensors[tensor].base != NETWORK_NONE; tensor = network->tensors[tensor].base) {
		const struct network_tensor *one = &network->tensors[tensor];
		struct npumem_place base;
		if (one->is_slice) {
			at->n += one->from.n;
			at->c += one->from.c;
			at->h += one->from.h;
			at->w += one->from.w;
			continue;
		}
		network_array(network, one->base, &base);
		/* N may change with one channel only. */
		bool with_n = one->shape.n != base.shape.n;
		int64_t flat = ((with_n ? at->n : 0) * one->shape.h + at->h) * one->shape.w + at->w;
		at->w = flat % base.shape.w;
		flat /= base.shape.w;
		at->h = flat % base.shape.h;
		at->n = with_n ? flat / base.shape.h : at->n;
	}
}

/* The EU lanes that hold elements, as marks of NPUs and lanes. */
struct lanes {
	struct npumem_place root;
	int64_t per_npu;
	int64_t *n_of_npu;
	uint8_t *marks;
};

static void mark_feature(const struct costing *costing, int tensor, const struct npumem_dims *shape, int64_t n,
			 int64_t c, struct lanes *lanes)
{
	int64_t npu, offset, bytes = npumem_dtype_bytes(lanes->root.dtype);
	for (int64_t i = 0; i < shape->h * shape->w; i++) {
		struct npumem_dims at = {n, c, i / shape->w, i % shape->w};
		find_in_root(costing->network, tensor, &at);
		/* The tail of a matrix. */
		if (at.c == lanes->root.shape.c - 1 && at.w >= lanes->root.last_w)
			break;
		npumem_place_locate(costing->geometry, &lanes->root, at.n, at.c, at.h, at.w, &npu, &offset);
		if (lanes->n_of_npu[npu] == lanes->per_npu)
			return;
		uint8_t *mark = &lanes->marks[npu * lanes->per_npu + offset / bytes % lanes->per_npu];
		lanes->n_of_npu[npu] += !*mark;
		*mark = 1;
	}
}

static bool count_lanes(struct costing *costing, int tensor, struct costs_operation *cost)
{
	const struct network *network = costing->network;
	const struct npumem_geometry *geometry = costing->geometry;
	const struct npumem_spec *spec = &network->tensors[network_root(network, tensor)].spec;
	struct npumem_error ignored = {.status = 0};
	struct npumem_place place;
	struct lanes lanes;
	array_of(costing, tensor, &place);
	if (costing->unknown || npumem_place_resolve(geometry, spec, &lanes.root, &ignored))
		return true;
	if (place.rows)
		place.shape = lanes.root.shape;
	lanes.per_npu = geometry->eu_bytes / (int64_t)npumem_dtype_bytes(place.dtype);
	lanes.n_of_npu = calloc((size_t)geometry->n_npus, sizeof(*lanes.n_of_npu));
	lanes.marks = calloc((size_t)geometry->n_npus, (size_t)lanes.per_npu);
	bool enough = lanes.n_of_npu && lanes.marks;
	for (int64_t n = 0; n < place.shape.n && enough; n++)
		for (int64_t c = 0; c < place.shape.c; c++)
			mark_feature(costing, tensor, &place.shape, n, c, &lanes);
	for (int64_t npu = 0; npu < geometry->n_npus && enough; npu++) {
		cost->npus += lanes.n_of_npu[npu] > 0;
		cost->lanes += lanes.n_of_npu[npu];
	}
	free(lanes.n_of_npu);
	free(lanes.marks);
	return enough;
}

/* ---- multiply-accumulates ---- */

static int64_t param_of(const struct costing *costing, int number, unsigned i, int64_t fallback)
{
	const struct network_operation *operation = costing->operation;
	for (unsigned k = 0; k < operation->n_params; k++) {
		const struct npumem_param *param = &costing->network->params[operation->param + k];
		if (param->number == number && i < param->n_values)
			return param->values[i];
	}
	return fallback;
}

/* The shape of the operand in this role. */
static struct npumem_place operand_of(struct costing *costing, const char *role)
{
	const struct network_operation *operation = costing->operation;
	struct npumem_place place = {.dtype = 0};
	for (unsigned i = 0; i < operation->n_operands; i++) {
		const struct network_operand *operand = &costing->network->operands[operation->operand + i];
		if (strcmp(operand->role, role) != 0)
			continue;
		array_of(costing, operand->tensor, &place);
		return place;
	}
	costing->unknown = true;
	return place;
}

/* Elements of all operands whose roles begin so: weights, weights_in, weights0, … */
static int64_t elements_in(struct costing *costing, const char *prefix)
{
	const struct network_operation *operation = costing->operation;
	int64_t sum = 0;
	for (unsigned i = 0; i < operation->n_operands && !costing->unknown; i++) {
		const struct network_operand *operand = &costing->network->operands[operation->operand + i];
		struct npumem_place place;
		if (strncmp(operand->role, prefix, strlen(prefix)) != 0)
			continue;
		array_of(costing, operand->tensor, &place);
		if (!costing->unknown)
			sum = plus(costing, sum, elements_of(costing, &place));
	}
	return sum;
}

/* Pairs of a point i of `n` and a tap t of `taps` with 0 <= i * stride + t * dilation - before < extent. */
struct span {
	int64_t n, taps, stride, dilation, before, extent;
};

static int64_t floor_to(int64_t value, int64_t divisor)
{
	return value >= 0 ? value / divisor : -((-value + divisor - 1) / divisor);
}

static int64_t pairs(struct costing *costing, struct span span)
{
	int64_t sum = 0;
	bool is_right = span.n >= 1 && span.taps >= 1 && span.stride >= 1 && span.dilation >= 1 &&
			span.before >= 0 && span.n <= COSTS_LIMIT && span.taps <= COSTS_LIMIT &&
			span.stride <= COSTS_LIMIT && span.dilation <= COSTS_LIMIT && span.before <= COSTS_LIMIT;
	costing->unknown |= !is_right;
	/* Over whichever are fewer. */
	if (span.taps < span.n)
		span = (struct span){span.taps, span.n, span.dilation, span.stride, span.before, span.extent};
	for (int64_t i = 0; i < span.n && is_right; i++) {
		int64_t at = i * span.stride - span.before;
		int64_t first = -floor_to(at, span.dilation), last = floor_to(span.extent - 1 - at, span.dilation);
		first = first < 0 ? 0 : first;
		last = last >= span.taps ? span.taps - 1 : last;
		sum += last >= first ? last - first + 1 : 0;
	}
	return sum;
}

/* Of a transposed convolution the inputs are scattered, of all others the outputs gather. */
static int64_t window_macs(struct costing *costing, bool transposed)
{
	struct npumem_place in = operand_of(costing, "in"), weights = operand_of(costing, "weights"),
			    out = operand_of(costing, "out");
	const struct npumem_dims *from = transposed ? &in.shape : &out.shape,
				 *to = transposed ? &out.shape : &in.shape;
	if (costing->unknown)
		return 0;
	int64_t h = pairs(costing,
			  (struct span){from->h, weights.shape.h, param_of(costing, NPUMEM_PARAM_STRIDE, 0, 1),
					param_of(costing, NPUMEM_PARAM_DILATION, 0, 1),
					param_of(costing, NPUMEM_PARAM_PADDING, 0, 0), to->h});
	int64_t w = pairs(costing,
			  (struct span){from->w, weights.shape.w, param_of(costing, NPUMEM_PARAM_STRIDE, 1, 1),
					param_of(costing, NPUMEM_PARAM_DILATION, 1, 1),
					param_of(costing, NPUMEM_PARAM_PADDING, 2, 0), to->w});
	return times(costing, times(costing, in.shape.n, times(costing, weights.shape.n, weights.shape.c)),
		     times(costing, h, w));
}

/* Every row of `rows` meets all elements of the weights once. */
static int64_t dense_macs(struct costing *costing, const char *rows, const char *weights)
{
	struct npumem_place place = operand_of(costing, rows);
	return costing->unknown
		       ? 0
		       : times(costing, place.rows ? place.rows : place.shape.n, elements_in(costing, weights));
}

/* As the daemon counts: kernels that are not here count none. */
static int64_t macs_of(struct costing *costing)
{
	switch (costing->operation->kernel->number) {
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

/* ---- operations ---- */

/* Returns the first output. */
static int run_costs(struct costing *costing, struct costs_operation *cost)
{
	const struct network_operation *operation = costing->operation;
	int first = NETWORK_NONE;
	for (unsigned i = 0; i < operation->n_operands; i++) {
		const struct network_operand *operand = &costing->network->operands[operation->operand + i];
		bool writes = network_writes(operation, operand);
		int64_t *sum = writes ? &cost->written_bytes : &cost->read_bytes;
		*sum = plus(costing, *sum, bytes_of(costing, operand->tensor));
		if (writes && (first == NETWORK_NONE || !strcmp(operand->role, "out")))
			first = operand->tensor;
	}
	cost->macs = macs_of(costing);
	return first;
}

static int dma_costs(struct costing *costing, struct costs_operation *cost)
{
	const struct network_operation *operation = costing->operation;
	cost->dma_bytes = bytes_of(costing, operation->tensor);
	if (operation->kind != NETWORK_READ)
		cost->written_bytes = cost->dma_bytes;
	if (operation->kind == NETWORK_READ)
		cost->read_bytes = cost->dma_bytes;
	else if (operation->kind == NETWORK_COPY)
		cost->read_bytes = bytes_of(costing, operation->source);
	return operation->tensor;
}

/* What does not divide counts as a whole cycle. */
static int64_t cycles_of(struct costing *costing, const struct rates *rates, const struct costs_operation *cost)
{
	bool runs = costing->operation->kind == NETWORK_RUN;
	int64_t work = runs ? cost->macs : cost->dma_bytes, rate = rates->dma_bytes_per_cycle;
	/* A rate beyond any work takes one cycle. */
	if (runs && __builtin_mul_overflow(rates->macs_per_cycle, cost->npus, &rate))
		rate = INT64_MAX;
	return rate ? plus(costing, rates->overhead, work / rate + (work % rate > 0)) : 0;
}

static int too_large(const char *what, struct npumem_error *error)
{
	return npumem_error_set(error, NPUMEM_INVALID, "%s is more than 9223372036854775807", what);
}

int costs_compute(const struct network *network, const struct npumem_geometry *geometry, const struct rates *rates,
		  size_t i, struct costs_operation *cost, struct npumem_error *error)
{
	const struct network_operation *operation = &network->operations[i];
	struct costing costing = {.network = network, .geometry = geometry, .operation = operation};
	struct npumem_error why = {.status = 0};
	bool runs = operation->kind == NETWORK_RUN;
	*cost = (struct costs_operation){.is_known = false};
	int tensor = (runs ? run_costs : dma_costs)(&costing, cost);
	if (!costing.unknown && !costing.overflow && tensor != NETWORK_NONE &&
	    !count_lanes(&costing, tensor, cost))
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "no memory for the network");
	if (!runs)
		cost->lanes = 0;
	if (rates && !costing.unknown && !costing.overflow)
		cost->cycles = cycles_of(&costing, rates, cost);
	if (costing.overflow && !costing.unknown) {
		too_large("its cost", &why);
		return network_about(network, operation, &why, error);
	}
	if (costing.unknown)
		*cost = (struct costs_operation){.is_known = false};
	cost->is_known = !costing.unknown;
	return 0;
}

int costs_add(struct costs_operation *sum, const struct costs_operation *cost, struct npumem_error *error)
{
	bool overflow = __builtin_add_overflow(sum->macs, cost->macs, &sum->macs);
	overflow |= __builtin_add_overflow(sum->dma_bytes, cost->dma_bytes, &sum->dma_bytes);
	overflow |= __builtin_add_overflow(sum->read_bytes, cost->read_bytes, &sum->read_bytes);
	overflow |= __builtin_add_overflow(sum->written_bytes, cost->written_bytes, &sum->written_bytes);
	overflow |= __builtin_add_overflow(sum->cycles, cost->cycles, &sum->cycles);
	sum->npus = cost->npus > sum->npus ? cost->npus : sum->npus;
	sum->lanes = cost->lanes > sum->lanes ? cost->lanes : sum->lanes;
	return overflow ? too_large("the sum of all costs", error) : 0;
}
