/* One loop per container, over blocks after which progress is told. */
#include "daemon/device/kernel_support/lut_map.h"

#include "daemon/device/kernel_support/lut_choice.h"
#include "daemon/device/kernel_support/operands.h"

enum { LUT_MAP_IN, LUT_MAP_OUT };
enum { LUT_MAP_BLOCK = 4096 };

int lut_map_check(const struct kernel_call *call, struct npumem_error *error)
{
	const struct kernel_operand *in = operands_get(call, LUT_MAP_IN);
	int status = operands_check_choices(call, error);
	if (!status)
		status = operands_check_fixed(call, LUT_MAP_IN, error);
	if (!status)
		status = operands_check_same_dtype(call, LUT_MAP_OUT, LUT_MAP_IN, error);
	if (!status)
		status = lut_choice_check(call, LUT_MAP_OUT, error);
	return status ? status : operands_check_shape(call, LUT_MAP_OUT, &in->shape, "in has", error);
}

void lut_map_run(struct kernel_call *call, enum lut_function function)
{
	const struct kernel_operand *in = operands_get(call, LUT_MAP_IN), *out = operands_get(call, LUT_MAP_OUT);
	unsigned bytes = npumem_dtype_bytes(in->dtype);
	struct lut_reader reader;
	lut_reader_init(&reader, lut_find(function, lut_choice(call, LUT_MLI2_0)), in->frac_bits, call->rounding);
	int64_t n = operands_elements(in), saturated = 0;
	for (int64_t first = 0; first < n; first += LUT_MAP_BLOCK) {
		int64_t end = n - first < LUT_MAP_BLOCK ? n : first + LUT_MAP_BLOCK;
		if (bytes == 1)
			for (int64_t i = first; i < end; i++)
				((int8_t *)out->data)[i] =
					(int8_t)lut_result(&reader, ((const int8_t *)in->data)[i], 1, &saturated);
		else
			for (int64_t i = first; i < end; i++)
				((int16_t *)out->data)[i] = (int16_t)lut_result(
					&reader, ((const int16_t *)in->data)[i], 2, &saturated);
		if (!kernel_step(call, end - first))
			break;
	}
	call->counts = (struct kernel_counts){.saturated = saturated};
}
