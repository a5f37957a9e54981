/* out = (acc * 2^lshift + in1 * value) / 2^rshift, in 32 bits that wrap; 8-bit sources, 16-bit acc and out. */
#include "daemon/device/kernel_support/elementwise/packed.h"
#include "daemon/device/kernel_support/steps.h"

const struct kernel kernel_packed_mac_c = {
	.number = NPUMEM_KERNEL_PACKED_MAC_C,
	.in_place = true,
	.by_feature = PACKED_BY_FEATURE,
	.check = packed_check_mac,
	.steps = steps_elementwise,
	.run = packed_run_mac,
};
