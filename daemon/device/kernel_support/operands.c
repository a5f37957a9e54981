/* Refusals that all kernels share. */
#include "daemon/device/kernel_support/operands.h"

int64_t operands_elements(const struct kernel_operand *operand)
{
	return operand->shape.n * operand->shape.c * operand->shape.h * operand->shape.w;
}

int operands_check_fixed(const struct kernel_call *call, unsigned role, struct npumem_error *error)
{
	int dtype = operands_get(call, role)->dtype;
	if (npumem_dtype_is_fixed(dtype))
		return 0;
	npumem_error_set(error, NPUMEM_INVALID, "%s: %s is %s, but must be fx8 or fx16", call->row->name,
			 call->roles[role].name, npumem_dtype_name(dtype));
	npumem_error_text(error, "role", call->roles[role].name);
	return NPUMEM_INVALID;
}

int operands_check_same_dtype(const struct kernel_call *call, unsigned role, unsigned as,
			      struct npumem_error *error)
{
	int dtype = operands_get(call, role)->dtype, want = operands_get(call, as)->dtype;
	if (dtype == want)
		return 0;
	npumem_error_set(error, NPUMEM_INVALID, "%s: %s is %s, but must be %s as %s is", call->row->name,
			 call->roles[role].name, npumem_dtype_name(dtype), npumem_dtype_name(want),
			 call->roles[as].name);
	npumem_error_text(error, "role", call->roles[role].name);
	return NPUMEM_INVALID;
}

int operands_check_same_frac_bits(const struct kernel_call *call, unsigned role, unsigned as,
				  struct npumem_error *error)
{
	int64_t frac_bits = operands_get(call, role)->frac_bits, want = operands_get(call, as)->frac_bits;
	if (frac_bits == want)
		return 0;
	npumem_error_set(error, NPUMEM_INVALID, "%s: %s has %lld frac_bits, but must have the %lld of %s",
			 call->row->name, call->roles[role].name, (long long)frac_bits, (long long)want,
			 call->roles[as].name);
	npumem_error_text(error, "role", call->roles[role].name);
	npumem_error_number(error, "value", frac_bits);
	npumem_error_number(error, "expected", want);
	return NPUMEM_INVALID;
}

int operands_check_shape(const struct kernel_call *call, unsigned role, const struct npumem_dims *want,
			 const char *why, struct npumem_error *error)
{
	const struct npumem_dims *shape = &operands_get(call, role)->shape;
	const int64_t has[] = {shape->n, shape->c, shape->h, shape->w};
	const int64_t must[] = {want->n, want->c, want->h, want->w};
	static const char *const names[] = {"N", "C", "H", "W"};
	for (unsigned i = 0; i < 4; i++) {
		if (has[i] == must[i])
			continue;
		npumem_error_set(error, NPUMEM_INVALID, "%s: %s has %s %lld, but %s %lld", call->row->name,
				 call->roles[role].name, names[i], (long long)has[i], why, (long long)must[i]);
		npumem_error_text(error, "role", call->roles[role].name);
		npumem_error_text(error, "dimension", names[i]);
		npumem_error_number(error, "value", has[i]);
		npumem_error_number(error, "expected", must[i]);
		return NPUMEM_INVALID;
	}
	return 0;
}

int operands_check_param(const struct kernel_call *call, int number, const char *part, int64_t value, int64_t low,
			 int64_t high, struct npumem_error *error)
{
	if (value >= low && value <= high)
		return 0;
	const char *name = npumem_param_by_number(number)->name;
	npumem_error_set(error, NPUMEM_INVALID, "%s: %s%s%s is %lld, but must be %lld to %lld", call->row->name,
			 name, part[0] ? " " : "", part, (long long)value, (long long)low, (long long)high);
	npumem_error_text(error, "parameter", name);
	npumem_error_number(error, "value", value);
	npumem_error_number(error, "expected", value < low ? low : high);
	return NPUMEM_INVALID;
}
