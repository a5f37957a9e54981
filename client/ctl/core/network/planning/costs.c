/* Costs of operations from the network alone. Invariant: every product and sum is checked, as shapes and
 * parameters are the user's; a network that the daemon would refuse may have no costs, but never wrong memory. */
#include "client/ctl/core/network/planning/planning.h"

#include <string.h>

#include <npumem/costs.h>

#include "client/ctl/core/kernels/kernels.h"

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
static void array_at(struct costing *costing, int tensor, struct npumem_place *place)
{
	const struct network *network = costing->network;
	const struct network_tensor *one = &network->tensors[tensor];
	costing->unknown |= !network_array(network, tensor, place);
	if (costing->unknown || one->base == NETWORK_NONE)
		return;
	struct npumem_place base;
	array_at(costing, one->base, &base);
	/* A part of a matrix goes by channels, which only the device has. */
	costing->unknown |= base.rows != 0 && !one->is_format;
	if (one->is_format)
		return;
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
	array_at(costing, tensor, &place);
	return costing->unknown ? 0
				: times(costing, elements_of(costing, &place), npumem_dtype_bytes(place.dtype));
}

/* The place of a tensor whose root is resolved; of a view as the daemon has it. */
static void place_of(const struct costing *costing, int tensor, struct npumem_place *place)
{
	const struct network_tensor *one = &costing->network->tensors[tensor];
	struct npumem_dims base;
	if (one->base == NETWORK_NONE)
		return;
	place_of(costing, one->base, place);
	base = place->shape;
	if (one->is_format)
		return;
	if (one->is_slice) {
		place->start_npu = (place->start_npu + one->from.c) % costing->geometry->n_npus;
		place->shape = (struct npumem_dims){one->to.n - one->from.n, one->to.c - one->from.c,
						    one->to.h - one->from.h, one->to.w - one->from.w};
	} else {
		place->shape = one->shape;
		place->stride.h = one->shape.w * place->stride.w;
		/* N may change with one channel only. */
		if (one->shape.n != base.n)
			place->stride.n = one->shape.h * place->stride.h;
	}
	place->last_w = place->shape.w;
}

static void count_lanes(struct costing *costing, int tensor, struct costs_operation *cost)
{
	const struct network *network = costing->network;
	const struct npumem_spec *spec = &network->tensors[network_root(network, tensor)].spec;
	struct npumem_error ignored = {.status = 0};
	struct npumem_place place;
	array_at(costing, tensor, &place);
	if (costing->unknown || npumem_place_resolve(costing->geometry, spec, &place, &ignored))
		return;
	place_of(costing, tensor, &place);
	npumem_cost_lanes(costing->geometry, &place, &cost->npus, &cost->lanes);
}

/* ---- operations ---- */

/* Returns the first output. */
static int run_costs(struct costing *costing, struct costs_operation *cost)
{
	const struct network_operation *operation = costing->operation;
	struct npumem_cost_operand operands[NPUMEM_OPERANDS_MAX];
	int first = NETWORK_NONE;
	/* More of them are refused. */
	costing->unknown |= operation->n_operands > NPUMEM_OPERANDS_MAX;
	for (unsigned i = 0; i < operation->n_operands && i < NPUMEM_OPERANDS_MAX; i++) {
		const struct network_operand *operand = &costing->network->operands[operation->operand + i];
		bool writes = network_writes(operation, operand);
		int64_t *sum = writes ? &cost->written_bytes : &cost->read_bytes;
		*sum = plus(costing, *sum, bytes_of(costing, operand->tensor));
		struct npumem_place place;
		array_at(costing, operand->tensor, &place);
		operands[i] = (struct npumem_cost_operand){operand->role, place.shape, place.rows, place.cols};
		if (writes && (first == NETWORK_NONE || !strcmp(operand->role, "out")))
			first = operand->tensor;
	}
	if (costing->unknown)
		return first;
	cost->macs = npumem_cost_macs(operation->kernel->number, operands, operation->n_operands,
				      &costing->network->params[operation->param], operation->n_params);
	costing->unknown = cost->macs == NPUMEM_COST_UNKNOWN;
	costing->overflow |= cost->macs == NPUMEM_COST_OVERFLOW;
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
		  size_t i, const struct npumem_costs *told, struct costs_operation *cost,
		  struct npumem_error *error)
{
	const struct network_operation *operation = &network->operations[i];
	struct costing costing = {.network = network, .geometry = geometry, .operation = operation};
	struct npumem_error why = {.status = 0};
	bool runs = operation->kind == NETWORK_RUN;
	*cost = (struct costs_operation){.is_known = false};
	int tensor = (runs ? run_costs : dma_costs)(&costing, cost);
	if (!costing.unknown && !costing.overflow && tensor != NETWORK_NONE)
		count_lanes(&costing, tensor, cost);
	if (!runs)
		cost->lanes = 0;
	if (costing.unknown && told && told->npus) {
		*cost = (struct costs_operation){.macs = told->macs,
						 .dma_bytes = told->dma_bytes,
						 .read_bytes = told->read_bytes,
						 .written_bytes = told->written_bytes,
						 .npus = told->npus,
						 .lanes = told->lanes};
		costing.unknown = false;
	}
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
