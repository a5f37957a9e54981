/* lut= and the fixed formats of what tables give. */
#include "daemon/device/kernel_support/elementwise/lut_choice.h"

#include "daemon/device/kernel_support/operands.h"

enum lut_library lut_choice(const struct kernel_call *call, enum lut_library otherwise)
{
	return (enum lut_library)kernel_param(call, NPUMEM_PARAM_LUT, 0, otherwise);
}

int64_t lut_choice_frac_bits(int dtype)
{
	return 8 * npumem_dtype_bytes(dtype) - 1;
}

int lut_choice_check(const struct kernel_call *call, unsigned role, struct npumem_error *error)
{
	const struct kernel_operand *operand = operands_get(call, role);
	int64_t want = lut_choice_frac_bits(operand->dtype);
	if (operand->frac_bits == want)
		return 0;
	npumem_error_set(error, NPUMEM_INVALID,
			 "%s: %s has %lld frac_bits, but must have the %lld of %s results in [-1, 1)",
			 call->row->name, call->roles[role].name, (long long)operand->frac_bits, (long long)want,
			 npumem_dtype_name(operand->dtype));
	npumem_error_text(error, "role", call->roles[role].name);
	npumem_error_number(error, "value", operand->frac_bits);
	npumem_error_number(error, "expected", want);
	return NPUMEM_INVALID;
}
