/* What convolutions, fully connected layers and matrix products share besides their loops. */
#include "daemon/device/kernel_support/windows/weighted.h"

#include <assert.h>

#include "daemon/device/fixed/rows/folds.h"
#include "daemon/device/kernel_support/elementwise/elements.h"
#include "daemon/device/kernel_support/limits.h"
#include "daemon/device/kernel_support/operands.h"

enum {
	WEIGHTED_BLOCK = 256,
	BIAS_SHIFT_MAX = 40, /* of a bias that is added without a second look */
};

static int check_weights_dtype(const struct kernel_call *call, const struct weighted_roles *roles,
			       struct npumem_error *error)
{
	const struct kernel_operand *data = operands_get(call, roles->data);
	const struct kernel_operand *weights = operands_get(call, roles->weights);
	if (weights->dtype == data->dtype || (data->dtype == NPUMEM_FX16 && weights->dtype == NPUMEM_FX8))
		return 0;
	npumem_error_set(error, NPUMEM_INVALID, "%s: %s is %s, but must be %s with %s %s", call->row->name,
			 call->roles[roles->weights].name, npumem_dtype_name(weights->dtype),
			 data->dtype == NPUMEM_FX16 ? "fx16 or fx8" : "fx8", npumem_dtype_name(data->dtype),
			 call->roles[roles->data].name);
	npumem_error_text(error, "role", call->roles[roles->weights].name);
	return NPUMEM_INVALID;
}

static int check_bias(const struct kernel_call *call, const struct weighted_roles *roles,
		      struct npumem_error *error)
{
	const struct kernel_operand *bias = operands_get(call, roles->bias);
	if (!bias)
		return 0;
	int status = operands_check_same_dtype(call, roles->bias, roles->weights, error);
	if (status)
		return status;
	int64_t data = operands_get(call, roles->data)->frac_bits;
	int64_t weights = operands_get(call, roles->weights)->frac_bits;
	if (bias->frac_bits <= data + weights)
		return 0;
	/* "the number of bias fractional bits must be less than or equal to fractional bits for the sum of inputs"
	 */
	npumem_error_set(error, NPUMEM_INVALID,
			 "%s: %s has %lld frac_bits, more than the %lld of %s (%lld) and %s (%lld)",
			 call->row->name, call->roles[roles->bias].name, (long long)bias->frac_bits,
			 (long long)(data + weights), call->roles[roles->data].name, (long long)data,
			 call->roles[roles->weights].name, (long long)weights);
	npumem_error_text(error, "role", call->roles[roles->bias].name);
	npumem_error_number(error, "value", bias->frac_bits);
	npumem_error_number(error, "expected", data + weights);
	return NPUMEM_INVALID;
}

int weighted_check(const struct kernel_call *call, const struct weighted_roles *roles, int64_t n_products,
		   struct npumem_error *error)
{
	int status = operands_check_fixed(call, roles->data, error);
	if (!status)
		status = check_weights_dtype(call, roles, error);
	if (!status)
		status = check_bias(call, roles, error);
	bool widens = roles->widens && operands_get(call, roles->data)->dtype == NPUMEM_FX8;
	if (!status)
		status = widens ? operands_check_fixed(call, roles->out, error)
				: operands_check_same_dtype(call, roles->out, roles->data, error);
	if (!status && n_products > ACCUMULATOR_PRODUCTS_MAX)
		return npumem_error_set(error, NPUMEM_INVALID,
					"%s: an output would sum %lld products, more than %lld", call->row->name,
					(long long)n_products, (long long)ACCUMULATOR_PRODUCTS_MAX);
	return status;
}

void weighted_init(struct weighted *weighted, const struct kernel_call *call, const struct weighted_roles *roles,
		   int64_t n_products)
{
	const struct kernel_operand *data = operands_get(call, roles->data);
	const struct kernel_operand *weights = operands_get(call, roles->weights);
	const struct kernel_operand *bias = operands_get(call, roles->bias);
	const struct kernel_operand *out = operands_get(call, roles->out);
	int64_t frac_bits = data->frac_bits + weights->frac_bits;
	struct requantize result;
	assert(n_products <= ACCUMULATOR_PRODUCTS_MAX && (!bias || bias->frac_bits <= frac_bits));
	requantize_init(&result, out->dtype, frac_bits - out->frac_bits, call->rounding);
	limits_relu(call, out->frac_bits, &result);
	*weighted = (struct weighted){
		.data_bytes = npumem_dtype_bytes(data->dtype),
		.weight_bytes = npumem_dtype_bytes(weights->dtype),
		.bias_dtype = bias ? bias->dtype : 0,
	};
	weighted_load(weighted, call, roles);
	accumulator_init(&weighted->accumulator, weighted->data_bytes, weighted->weight_bytes, n_products,
			 bias ? frac_bits - bias->frac_bits : 0, &result);
}

void weighted_load(struct weighted *weighted, const struct kernel_call *call, const struct weighted_roles *roles)
{
	const struct kernel_operand *bias = operands_get(call, roles->bias);
	weighted->bias = bias ? bias->data : NULL;
}

int64_t weighted_most_bias(const struct weighted *weighted, enum isa isa, int64_t n)
{
	const struct fold_rows bias = {weighted->bias, weighted->weight_bytes, n, 1};
	int64_t shift = weighted->accumulator.bias_shift;
	if (!weighted->bias)
		return 0;
	int64_t high = fold_across(FOLD_LARGER, isa, &bias, n);
	int64_t low = fold_across(FOLD_SMALLER, isa, &bias, n);
	int64_t most = -low > high ? -low : high;
	return most == 0 ? 0 : shift > BIAS_SHIFT_MAX ? INT64_C(1) << 60 : most << shift;
}

void weighted_finish_channel(const struct weighted *weighted, void *sums, int64_t n, int64_t channel, void *out,
			     struct kernel_counts *counts)
{
	int32_t bias = 0;
	if (weighted->bias)
		elements_load32(weighted->bias_dtype, weighted->bias, channel, 1, &bias);
	accumulator_finish(&weighted->accumulator, sums, n, weighted->bias ? &bias : NULL, 0, out,
			   &counts->saturated, &counts->wrapped);
}

void weighted_finish_channels(const struct weighted *weighted, void *sums, int64_t n, int64_t channel, void *out,
			      struct kernel_counts *counts)
{
	const struct accumulator *accumulator = &weighted->accumulator;
	for (int64_t i = 0; i < n; i += WEIGHTED_BLOCK) {
		int64_t count = n - i < WEIGHTED_BLOCK ? n - i : WEIGHTED_BLOCK;
		int32_t bias[WEIGHTED_BLOCK];
		if (weighted->bias)
			elements_load32(weighted->bias_dtype, weighted->bias, channel + i, count, bias);
		accumulator_finish(accumulator, (uint8_t *)sums + i * accumulator->sum_bytes, count,
				   weighted->bias ? bias : NULL, 1, (uint8_t *)out + i * accumulator->result.bytes,
				   &counts->saturated, &counts->wrapped);
	}
}
