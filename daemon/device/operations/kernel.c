/* The table of kernels: one entry per row of kernels.def, by number. */
#include "daemon/device/operations/kernel.h"

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
