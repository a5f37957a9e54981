/* What an operation would cost, of one that was checked. */
#include <npumem/costs.h>
#include <string.h>

#include "daemon/device/operations/op_operands.h"

static int64_t bytes_of(const struct tensor *tensor)
{
	return tensor_elements(tensor) * (int64_t)npumem_dtype_bytes(tensor_dtype(tensor));
}

static const struct tensor *run_costs(const struct op *op, struct npumem_costs *costs)
{
	struct npumem_cost_operand operands[NPUMEM_OPERANDS_MAX];
	struct op_access accesses[OP_ACCESSES_MAX];
	const struct tensor *first = NULL;
	unsigned n = op_accesses(op, accesses);

	for (unsigned i = 0; i < n; i++) {
		const struct npumem_place *place = TENSOR_PLACE(accesses[i].tensor);
		const char *role = op->work->names[i];
		int64_t *sum = accesses[i].writes ? &costs->written_bytes : &costs->read_bytes;

		operands[i] = (struct npumem_cost_operand){role, place->shape, place->rows, place->cols};
		*sum += bytes_of(accesses[i].tensor);
		if (accesses[i].writes && (!first || !strcmp(role, "out")))
			first = accesses[i].tensor;
	}
	costs->macs = npumem_cost_macs(op->kernel, operands, n, op->params, op->n_params);
	return first;
}

static const struct tensor *dma_costs(const struct op *op, struct npumem_costs *costs)
{
	bool is_part = op->kind == OP_WRITE || op->kind == OP_READ;
	int64_t element = npumem_dtype_bytes(tensor_dtype(op->tensor));

	costs->dma_bytes = bytes_of(op->tensor);
	if (is_part)
		costs->dma_bytes = op->count < 0 ? costs->dma_bytes - op->first * element : op->count * element;
	if (op->kind == OP_READ)
		costs->read_bytes = costs->dma_bytes;
	else
		costs->written_bytes = costs->dma_bytes;
	if (op->kind == OP_COPY)
		costs->read_bytes = bytes_of(op->source);
	return op->tensor;
}

void op_costs(const struct device *device, const struct op *op, struct npumem_costs *costs)
{
	const struct tensor *tensor;

	*costs = (struct npumem_costs){.macs = 0};
	tensor = op->kind == OP_RUN ? run_costs(op, costs) : dma_costs(op, costs);
	if (tensor)
		npumem_cost_lanes(&device->options.geometry, TENSOR_PLACE(tensor), &costs->npus, &costs->lanes);
	if (op->kind != OP_RUN)
		costs->lanes = 0;
	/* Of shapes that a kernel takes, but whose products leave 64 bits: it would not end. */
	if (costs->macs < 0)
		costs->macs = INT64_MAX;
}
