/* The table of kernels: one entry per row of kernels.def, by number. */
#include "daemon/device/operations/kernel.h"

#define KERNEL(name, NAME, number, roles, parameters, types, summary) extern const struct kernel kernel_##name;
#include <npumem/kernels.def>
#undef KERNEL

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
