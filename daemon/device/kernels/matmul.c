/* Matrix product: out[r,m] = sum over k of left[r,k] * right[k,m] + bias[m]. */
#include "daemon/device/engine/product.h"
#include "daemon/device/kernel_support/operands.h"

enum { LEFT, RIGHT, BIAS, OUT };

static const struct weighted_roles roles = {LEFT, RIGHT, BIAS, OUT};

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	int64_t rows = operands_get(call, LEFT)->shape.n, terms = operands_get(call, LEFT)->shape.c;
	int64_t columns = operands_get(call, RIGHT)->shape.c;
	int status = operands_check_choices(call, error);
	if (!status)
		status = weighted_check(call, &roles, terms, error);
	struct npumem_dims want = {rows, terms, 1, 1};
	if (!status)
		status = operands_check_shape(call, LEFT, &want, "a matrix has", error);
	want = (struct npumem_dims){terms, columns, 1, 1};
	if (!status)
		status = operands_check_shape(call, RIGHT, &want, "left needs", error);
	want.n = 1;
	if (!status && operands_get(call, BIAS))
		status = operands_check_shape(call, BIAS, &want, "right needs", error);
	want.n = rows;
	return status ? status : operands_check_shape(call, OUT, &want, "left and right give", error);
}

static struct product product_of(const struct kernel_call *call)
{
	const struct npumem_dims *left = &operands_get(call, LEFT)->shape;
	return (struct product){&roles, left->n, left->c, operands_get(call, OUT)->shape.c};
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

const struct kernel kernel_matmul = {
	.number = NPUMEM_KERNEL_MATMUL,
	.check = check,
	.scratch_bytes = scratch_bytes,
	.pack_bytes = pack_bytes,
	.pack = pack,
	.packed = RIGHT,
	.run = run,
};
