#include "daemon/device/kernel_support/elementwise/packed.h"

#include "daemon/device/kernel_support/operands.h"

enum { SHIFT_MAX = 31 };

static bool is_packed(int dtype)
{
	return dtype == NPUMEM_INT8 || dtype == NPUMEM_UINT8 || dtype == NPUMEM_INT16 || dtype == NPUMEM_UINT16;
}

static int role_dtype(const struct kernel_call *call, const struct packed *packed, int role)
{
	return role == packed->in2 ? packed->in2_dtype : operands_get(call, (unsigned)role)->dtype;
}

/* "in2 is uint8, but must be ...", of a role or, as PACKED_NONE, of value_dtype. */
static int refuse_dtype(const struct kernel_call *call, int role, int dtype, const char *must,
			struct npumem_error *error)
{
	const char *name = role == PACKED_NONE ? "value_dtype" : call->roles[role].name;
	npumem_error_set(error, NPUMEM_INVALID, "%s: %s is %s, but must be %s", call->row->name, name,
			 npumem_dtype_name(dtype), must);
	npumem_error_text(error, role == PACKED_NONE ? "parameter" : "role", name);
	return NPUMEM_INVALID;
}

static int check_role(const struct kernel_call *call, const struct packed *packed, int role,
		      struct npumem_error *error)
{
	if (role == PACKED_NONE)
		return 0;
	int dtype = operands_get(call, (unsigned)role)->dtype;
	if (!is_packed(dtype))
		return refuse_dtype(call, role, dtype, "int8, uint8, int16 or uint16", error);
	return operands_check_shape(call, (unsigned)role, &operands_get(call, (unsigned)packed->in1)->shape,
				    "in1 has", error);
}

static int check_value(const struct kernel_call *call, const struct packed *packed, struct npumem_error *error)
{
	int64_t low, high;
	if (packed->in2 != PACKED_NONE)
		return 0;
	if (call->params.given[NPUMEM_PARAM_VALUE].n_values == 0) {
		npumem_error_set(error, NPUMEM_INVALID, "%s: value is missing", call->row->name);
		npumem_error_text(error, "parameter", "value");
		return NPUMEM_INVALID;
	}
	npumem_dtype_range(packed->in2_dtype, &low, &high);
	return operands_check_param(call, NPUMEM_PARAM_VALUE, npumem_dtype_name(packed->in2_dtype), packed->value,
				    low, high, error);
}

static int check_rounding(const struct kernel_call *call, struct npumem_error *error)
{
	/* The device's default is not meant for packed operations, and passes. */
	if (call->params.given[NPUMEM_PARAM_ROUNDING].n_values == 0 || call->rounding == NPUMEM_UP)
		return 0;
	npumem_error_set(error, NPUMEM_INVALID, "%s: rounding is %s, but packed operations round up",
			 call->row->name, npumem_rounding_name(call->rounding));
	npumem_error_text(error, "parameter", "rounding");
	return NPUMEM_INVALID;
}

/* What all have in common. `constant_dtype` 0: that of in1. */
static int check_all(const struct kernel_call *call, int constant_dtype, struct packed *packed,
		     struct npumem_error *error)
{
	int status = 0;
	packed_read(call, packed);
	if (packed->in2_dtype == 0)
		packed->in2_dtype = constant_dtype ? constant_dtype : role_dtype(call, packed, packed->in1);
	const int roles[] = {packed->in1, packed->in2, packed->acc, packed->out};
	for (unsigned i = 0; i < sizeof(roles) / sizeof(roles[0]) && !status; i++)
		status = check_role(call, packed, roles[i], error);
	if (!status)
		status = check_value(call, packed, error);
	if (!status)
		status = check_rounding(call, error);
	if (!status)
		status = operands_check_param(call, NPUMEM_PARAM_RSHIFT, "",
					      kernel_param(call, NPUMEM_PARAM_RSHIFT, 0, 0), 0, SHIFT_MAX, error);
	return status ? status
		      : operands_check_param(call, NPUMEM_PARAM_LSHIFT, "",
					     kernel_param(call, NPUMEM_PARAM_LSHIFT, 0, 0), 0, SHIFT_MAX, error);
}

/* The role, which may be the constant, has `bytes`. */
static int check_bytes(const struct kernel_call *call, const struct packed *packed, int role, unsigned bytes,
		       struct npumem_error *error)
{
	int dtype = role_dtype(call, packed, role);
	if (npumem_dtype_bytes(dtype) == bytes)
		return 0;
	return refuse_dtype(call, role, dtype, bytes == 1 ? "int8 or uint8" : "int16 or uint16", error);
}

/* And sources of one width, which is `bytes`, or 0 for that of in1. */
static int check_sources(const struct kernel_call *call, int constant_dtype, unsigned bytes, struct packed *packed,
			 struct npumem_error *error)
{
	int status = check_all(call, constant_dtype, packed, error);
	if (status)
		return status;
	if (bytes == 0)
		bytes = npumem_dtype_bytes(role_dtype(call, packed, packed->in1));
	status = check_bytes(call, packed, packed->in1, bytes, error);
	return status ? status : check_bytes(call, packed, packed->in2, bytes, error);
}

int packed_check_sum(const struct kernel_call *call, struct npumem_error *error)
{
	struct packed packed;
	return check_sources(call, 0, 0, &packed, error);
}

int packed_check_mul(const struct kernel_call *call, struct npumem_error *error)
{
	struct packed packed;
	return check_sources(call, 0, 1, &packed, error);
}

int packed_check_mac(const struct kernel_call *call, struct npumem_error *error)
{
	struct packed packed;
	int status = check_sources(call, 0, 1, &packed, error);
	if (!status)
		status = check_bytes(call, &packed, packed.acc, 2, error);
	return status ? status : check_bytes(call, &packed, packed.out, 2, error);
}

int packed_check_order(const struct kernel_call *call, struct npumem_error *error)
{
	struct packed packed;
	int status = check_sources(call, 0, 0, &packed, error);
	if (status)
		return status;
	int dtype = role_dtype(call, &packed, packed.in1);
	if (packed.in2_dtype != dtype)
		return refuse_dtype(call, packed.in2, packed.in2_dtype, npumem_dtype_name(dtype), error);
	return check_bytes(call, &packed, packed.out, npumem_dtype_bytes(dtype), error);
}

int packed_check_logical(const struct kernel_call *call, struct npumem_error *error)
{
	struct packed packed;
	int status = check_sources(call, NPUMEM_INT16, 2, &packed, error);
	return status ? status
		      : operands_check_same_dtype(call, (unsigned)packed.out, (unsigned)packed.in1, error);
}

int packed_check_arithmetic(const struct kernel_call *call, struct npumem_error *error)
{
	struct packed packed;
	int status = packed_check_logical(call, error);
	if (status)
		return status;
	packed_read(call, &packed);
	int dtype = role_dtype(call, &packed, packed.in1);
	return dtype == NPUMEM_INT16
		       ? 0
		       : refuse_dtype(call, packed.in1, dtype, "int16, whose sign the shift keeps", error);
}
