/* Fully connected: out[n,m] = sum over k of in[n,k] * weights[k,m] + bias[m], in flattened C,H,W to k. */
#include "daemon/device/kernel_support/dense.h"
#include "daemon/device/kernel_support/operands.h"

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	const struct npumem_dims *in = &operands_get(call, DENSE_DATA)->shape;
	int64_t inputs = in->c * in->h * in->w, outputs = operands_get(call, DENSE_WEIGHTS)->shape.c;
	int status = weighted_check(call, &dense_roles, inputs, error);
	struct npumem_dims want = {inputs, outputs, 1, 1};
	if (!status)
		status = operands_check_shape(call, DENSE_WEIGHTS, &want, "in needs", error);
	want.n = 1;
	if (!status && operands_get(call, DENSE_BIAS))
		status = operands_check_shape(call, DENSE_BIAS, &want, "weights need", error);
	want.n = in->n;
	return status ? status : operands_check_shape(call, DENSE_OUT, &want, "in and weights give", error);
}

const struct kernel kernel_fully_connected = {
	.number = NPUMEM_KERNEL_FULLY_CONNECTED,
	.check = check,
	.scratch_bytes = dense_scratch_bytes,
	.pack_bytes = dense_pack_bytes,
	.pack = dense_pack,
	.packed = 1 << DENSE_WEIGHTS,
	.steps = dense_steps,
	.run = dense_run,
};
