/* Matrix product: out[r,m] = sum over k of left[r,k] * right[k,m] + bias[m]. */
#include "daemon/device/kernel_support/dense.h"
#include "daemon/device/kernel_support/operands.h"

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	int64_t rows = operands_get(call, DENSE_DATA)->shape.n, terms = operands_get(call, DENSE_DATA)->shape.c;
	int64_t columns = operands_get(call, DENSE_WEIGHTS)->shape.c;
	int status = weighted_check(call, &dense_roles, terms, error);
	struct npumem_dims want = {rows, terms, 1, 1};
	if (!status)
		status = operands_check_shape(call, DENSE_DATA, &want, "a matrix has", error);
	want = (struct npumem_dims){terms, columns, 1, 1};
	if (!status)
		status = operands_check_shape(call, DENSE_WEIGHTS, &want, "left needs", error);
	want.n = 1;
	if (!status && operands_get(call, DENSE_BIAS))
		status = operands_check_shape(call, DENSE_BIAS, &want, "right needs", error);
	want.n = rows;
	return status ? status : operands_check_shape(call, DENSE_OUT, &want, "left and right give", error);
}

const struct kernel kernel_matmul = {
	.number = NPUMEM_KERNEL_MATMUL,
	.check = check,
	.scratch_bytes = dense_scratch_bytes,
	.pack_bytes = dense_pack_bytes,
	.pack = dense_pack,
	.packed = 1 << DENSE_WEIGHTS,
	.steps = dense_steps,
	.run = dense_run,
};
