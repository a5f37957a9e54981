#include "daemon/device/kernel_support/elementwise/lut_map.h"

#include "daemon/device/fixed/rows/lut_bytes.h"
#include "daemon/device/kernel_support/elementwise/lut_choice.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/walk.h"

int lut_map_check(const struct kernel_call *call, struct npumem_error *error)
{
	const struct kernel_operand *in = operands_get(call, LUT_MAP_IN);
	int status = operands_check_fixed(call, LUT_MAP_IN, error);
	if (!status)
		status = operands_check_same_dtype(call, LUT_MAP_OUT, LUT_MAP_IN, error);
	if (!status)
		status = lut_choice_check(call, LUT_MAP_OUT, error);
	return status ? status : operands_check_shape(call, LUT_MAP_OUT, &in->shape, "in has", error);
}

void lut_map_run(struct kernel_call *call, enum lut_function function)
{
	const struct kernel_operand *in = operands_get(call, LUT_MAP_IN), *out = operands_get(call, LUT_MAP_OUT);
	struct lut_reader reader;
	struct lut_row row = {.reader = &reader, .bytes = npumem_dtype_bytes(in->dtype)};
	struct lut_bytes bytes;
	struct walk walk;
	bool table = row.bytes == 1 && operands_elements(in) >= LUT_BYTES_WORTH;
	lut_reader_init(&reader, lut_find(function, lut_choice(call, LUT_MLI2_0)), in->frac_bits, call->rounding);
	if (table)
		lut_bytes_init(&bytes, &reader);
	call->counts = (struct kernel_counts){.saturated = 0};
	for (walk_begin(&walk, call, LUT_MAP_OUT); walk_next(&walk);) {
		row.in = walk_at(&walk, in);
		row.out = walk_at(&walk, out);
		if (table)
			lut_bytes_row(call->isa, &bytes, row.in, walk.n, row.out, &call->counts.saturated);
		else
			lut_row(call->isa, &row, walk.n, &call->counts.saturated);
	}
}
