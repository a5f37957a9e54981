/* In this test packed tensors are long, whatever they are in truth: so that of small ones, which are soon
 * compared, half are moved on threads. The linker puts these in the place of the device's own (--wrap). */
#include "daemon/device/operations/op.h"

enum {
	ELEMENT_COST = 64
}; /* so that a whole one is beyond CALL_INLINE_COST, and a part or a view may be either */

int64_t __real_op_cost(const struct device *device, const struct op *op);
int64_t __wrap_op_cost(const struct device *device, const struct op *op);
int64_t __real_op_reach_cost(const struct tensor *tensor, int64_t n);
int64_t __wrap_op_reach_cost(const struct tensor *tensor, int64_t n);

static int64_t more_of(const struct tensor *tensor, int64_t n)
{
	return tensor_lanes(tensor) > 1 ? n * ELEMENT_COST : 0;
}

static int64_t more_of_all(const struct tensor *tensor)
{
	return more_of(tensor, tensor_elements(tensor));
}

int64_t __wrap_op_cost(const struct device *device, const struct op *op)
{
	int64_t cost = __real_op_cost(device, op), n;
	if (op->kind == OP_RUN) {
		for (unsigned i = 0; i < op->n_operands; i++)
			cost += more_of_all(op->operands[i].tensor);
		return cost;
	}
	n = tensor_elements(op->tensor);
	if ((op->kind == OP_WRITE || op->kind == OP_READ) && op->count >= 0 && op->count < n)
		n = op->count;
	return cost + more_of(op->tensor, n) + (op->kind == OP_COPY ? more_of_all(op->source) : 0);
}

int64_t __wrap_op_reach_cost(const struct tensor *tensor, int64_t n)
{
	return __real_op_reach_cost(tensor, n) + more_of(tensor, n);
}
