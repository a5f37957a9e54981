/* The table of kernels: one entry per row of kernels.def, by number. */
#include "daemon/device/operations/kernel.h"

#include <string.h>

#define KERNEL(name, NAME, number, roles, parameters, types, summary) extern const struct kernel kernel_##name;
#include <npumem/kernels.def>
#undef KERNEL

void kernel_operand_dense(struct kernel_operand *operand, void *data)
{
	const struct npumem_dims *shape = &operand->shape;
	int64_t feature_bytes = shape->h * shape->w * npumem_dtype_bytes(operand->dtype);
	operand->data = data;
	operand->features = (struct kernel_features){
		.base = data, .n_bytes = shape->c * feature_bytes, .row_bytes = feature_bytes, .n_npus = 1};
}

bool kernel_clear(const struct kernel_call *call, void *to, int64_t bytes, int64_t *pending)
{
	enum { STEP = 16 }; /* bytes that are zeroed in a step, pages that are not there yet among them */
	uint8_t *at = to;
	for (int64_t some; bytes > 0; bytes -= some, at += some) {
		int64_t steps = kernel_stretch(call, (bytes + STEP - 1) / STEP);
		some = steps * STEP < bytes ? steps * STEP : bytes;
		memset(at, 0, (size_t)some);
		if (!kernel_look(call, steps, pending))
			return false;
	}
	return true;
}

const struct kernel *kernel_by_number(int number)
{
	switch (number) {
#define KERNEL(name, NAME, number, roles, parameters, types, summary)                                             \
	case number:                                                                                              \
		return &kernel_##name;
#include <npumem/kernels.def>
#undef KERNEL
	default:
		return NULL;
	}
}
