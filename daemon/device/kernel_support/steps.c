/* One estimate for all kernels that go over elements: the largest operand decides, as others are scalars. */
#include "daemon/device/kernel_support/steps.h"

double steps_per_element(const struct kernel_call *call)
{
	enum { VECTORS = 1, ALONE = 16, FRAC_BITS = 15, LSHIFT = 8, RSHIFT = 24 };
	bool is_wide = call->isa == ISA_SCALAR || kernel_param(call, NPUMEM_PARAM_LSHIFT, 0, 0) > LSHIFT ||
		       kernel_param(call, NPUMEM_PARAM_RSHIFT, 0, 0) > RSHIFT;
	for (unsigned i = 0; i < call->n_roles; i++)
		is_wide = is_wide || (operands_get(call, i) && operands_get(call, i)->frac_bits > FRAC_BITS);
	return is_wide ? ALONE : VECTORS;
}

static int64_t elementwise(const struct kernel_call *call, double per_element)
{
	double most = 0, rows = 1, least = 0;
	for (unsigned i = 0; i < call->n_roles; i++) {
		const struct kernel_operand *operand = operands_get(call, i);
		if (!operand)
			continue;
		double elements = steps_elements(operand),
		       features = (double)(operand->shape.n * operand->shape.c);
		most = elements > most ? elements : most;
		least = elements > 1 && (elements < least || least == 0) ? elements : least;
		rows = (steps_has_features(operand) || least < most) && features > rows ? features : rows;
	}
	return steps_whole(most * per_element + rows * STEPS_ROW);
}

int64_t steps_elementwise(const struct kernel_call *call)
{
	return elementwise(call, steps_per_element(call));
}

int64_t steps_elementwise_slow(const struct kernel_call *call)
{
	return elementwise(call, 4 * steps_per_element(call));
}
