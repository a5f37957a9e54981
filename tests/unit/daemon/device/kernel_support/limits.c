/* relu= in both containers, frac_bits from 0 past the container. */
#include "tests/support/test.h"

#include "daemon/device/kernel_support/limits.h"

static void check_limits(int dtype, int64_t frac_bits, int64_t relu, int64_t low, int64_t high)
{
	struct kernel_call call = {.n_roles = 0};
	call.params.given[NPUMEM_PARAM_RELU] = (struct npumem_param){NPUMEM_PARAM_RELU, relu > 0, {relu}};
	struct requantize requantize;
	requantize_init(&requantize, dtype, 0, NPUMEM_UP);
	limits_relu(&call, frac_bits, &requantize);
	ck_assert_int_eq(requantize.limit_low, low);
	ck_assert_int_eq(requantize.limit_high, high);
}

TEST(every_choice)
{
	check_limits(NPUMEM_FX8, 4, 0, -128, 127); /* not given */
	check_limits(NPUMEM_FX8, 4, 1, -128, 127);
	check_limits(NPUMEM_FX8, 4, 2, 0, 127);
	check_limits(NPUMEM_FX8, 4, 3, -16, 16);
	check_limits(NPUMEM_FX8, 4, 4, 0, 96);
	check_limits(NPUMEM_FX16, 4, 2, 0, 32767);
	check_limits(NPUMEM_FX16, 12, 4, 0, 24576);
	check_limits(NPUMEM_FX16, 0, 3, -1, 1);
	check_limits(NPUMEM_FX16, 0, 4, 0, 6);
}

/* "Relu1 in Q.7/int8 is [-128, 127]; frac bits beyond the container just leave the container limit." */
TEST(past_the_container)
{
	check_limits(NPUMEM_FX8, 7, 3, -128, 127);
	check_limits(NPUMEM_FX8, 6, 3, -64, 64);
	check_limits(NPUMEM_FX8, 5, 4, 0, 127);
	check_limits(NPUMEM_FX16, 15, 3, -32768, 32767);
	check_limits(NPUMEM_FX16, 13, 4, 0, 32767);
	for (int64_t frac_bits = 16; frac_bits <= 127; frac_bits++) {
		check_limits(NPUMEM_FX16, frac_bits, 3, -32768, 32767);
		check_limits(NPUMEM_FX16, frac_bits, 4, 0, 32767);
		check_limits(NPUMEM_FX8, frac_bits, 3, -128, 127);
	}
}
