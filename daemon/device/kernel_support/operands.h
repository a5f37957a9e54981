/* What the checks of kernels have in common: types, shapes and values of parameters. Every refusal is one line
 * that names the kernel, the role, the value and what it must be; as fields: role, dimension, value, expected.
 *
 * Operands belong to tensors that exist, so every extent is at least 1, a feature (H * W) has at most 2^30
 * elements and a tensor less than 2^41. */
#ifndef DEVICE_OPERANDS_H
#define DEVICE_OPERANDS_H

#include "daemon/device/operations/kernel.h"

/* The first operand of a role (by its place in the row); NULL where an optional one was left out. */
static inline const struct kernel_operand *operands_get(const struct kernel_call *call, unsigned role)
{
	return call->roles[role].n > 0 ? &call->roles[role].operands[0] : NULL;
}

int64_t operands_elements(const struct kernel_operand *operand);

/* Each returns 0 or INVALID. */

/* The role is fx8 or fx16. */
int operands_check_fixed(const struct kernel_call *call, unsigned role, struct npumem_error *error);
/* The role has the type of role `as`. */
int operands_check_same_dtype(const struct kernel_call *call, unsigned role, unsigned as,
			      struct npumem_error *error);
/* The role has the frac_bits of role `as`. */
int operands_check_same_frac_bits(const struct kernel_call *call, unsigned role, unsigned as,
				  struct npumem_error *error);
/* The role's shape is `want`; `why` completes "out has H 5, but <why> 4": "in and window give". */
int operands_check_shape(const struct kernel_call *call, unsigned role, const struct npumem_dims *want,
			 const char *why, struct npumem_error *error);
/* One parameter's value (`part` names which one: "h", "top", or "" for the only one) lies in [low, high]. */
int operands_check_param(const struct kernel_call *call, int number, const char *part, int64_t value, int64_t low,
			 int64_t high, struct npumem_error *error);

#endif
