/* From a call to the product that it is. */
#include "daemon/device/kernel_support/dense.h"

#include "daemon/device/engine/product.h"
#include "daemon/device/kernel_support/operands.h"

const struct weighted_roles dense_roles = {DENSE_DATA, DENSE_WEIGHTS, DENSE_BIAS, DENSE_OUT, false};

static struct product product_of(const struct kernel_call *call)
{
	const struct npumem_dims *data = &operands_get(call, DENSE_DATA)->shape;
	return (struct product){&dense_roles, data->n, data->c * data->h * data->w,
				operands_get(call, DENSE_OUT)->shape.c};
}

size_t dense_scratch_bytes(const struct kernel_call *call)
{
	const struct product product = product_of(call);
	return product_scratch_bytes(call, &product);
}

size_t dense_pack_bytes(const struct kernel_call *call)
{
	const struct product product = product_of(call);
	return product_pack_bytes(call, &product);
}

bool dense_pack(const struct kernel_call *call, void *pack)
{
	const struct product product = product_of(call);
	return product_pack(call, &product, pack);
}

int64_t dense_steps(const struct kernel_call *call)
{
	const struct product product = product_of(call);
	return product_steps(call, &product);
}

void dense_run(struct kernel_call *call)
{
	const struct product product = product_of(call);
	product_run(call, &product);
}
