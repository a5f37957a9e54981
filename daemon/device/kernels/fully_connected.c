/* Fully connected: out[n,m] = sum over k of in[n,k] * weights[k,m] + bias[m], in flattened C,H,W to k. */
#include "daemon/device/engine/product.h"
#include "daemon/device/kernel_support/operands.h"

enum { IN, WEIGHTS, BIAS, OUT };

static const struct weighted_roles roles = {IN, WEIGHTS, BIAS, OUT};

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	const struct npumem_dims *in = &operands_get(call, IN)->shape;
	int64_t inputs = in->c * in->h * in->w, outputs = operands_get(call, WEIGHTS)->shape.c;
	int status = operands_check_choices(call, error);
	if (!status)
		status = weighted_check(call, &roles, inputs, error);
	struct npumem_dims want = {inputs, outputs, 1, 1};
	if (!status)
		status = operands_check_shape(call, WEIGHTS, &want, "in needs", error);
	want.n = 1;
	if (!status && operands_get(call, BIAS))
		status = operands_check_shape(call, BIAS, &want, "weights need", error);
	want.n = in->n;
	return status ? status : operands_check_shape(call, OUT, &want, "in and weights give", error);
}

static struct product product_of(const struct kernel_call *call)
{
	const struct npumem_dims *in = &operands_get(call, IN)->shape;
	return (struct product){&roles, in->n, in->c * in->h * in->w, operands_get(call, OUT)->shape.c};
}

static size_t scratch_bytes(const struct kernel_call *call)
{
	const struct product product = product_of(call);
	return product_scratch_bytes(call, &product);
}

static size_t pack_bytes(const struct kernel_call *call)
{
	const struct product product = product_of(call);
	return product_pack_bytes(call, &product);
}

static bool pack(const struct kernel_call *call, void *to)
{
	const struct product product = product_of(call);
	return product_pack(call, &product, to);
}

static void run(struct kernel_call *call)
{
	const struct product product = product_of(call);
	product_run(call, &product);
}

const struct kernel kernel_fully_connected = {
	.number = NPUMEM_KERNEL_FULLY_CONNECTED,
	.check = check,
	.scratch_bytes = scratch_bytes,
	.pack_bytes = pack_bytes,
	.pack = pack,
	.packed = WEIGHTS,
	.run = run,
};
