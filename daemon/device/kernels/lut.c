/* Any function of one element, by a table of the user's: an entry for each input of in's type, or for fx16 entries
 * at 2^k + 1 inputs, 2^(16 - k) apart, with the line between two of them.
 *
 * The pack has the entries as 16 bits, or, from bytes to bytes, in the order in which lut_bytes reads them. */
#include "daemon/device/fixed/rows/lookup.h"
#include "daemon/device/fixed/rows/lut_bytes.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/steps.h"
#include "daemon/device/kernel_support/walk.h"

enum { IN, TABLE, OUT };
enum { BYTES = 256, WORDS = 65536, STEP_BITS_MAX = 15 };

/* Bits of an input between two of `entries` of fx16; -1 where there is no such table. */
static int step_bits(int64_t entries)
{
	for (int bits = 1; bits <= STEP_BITS_MAX; bits++)
		if (entries == (WORDS >> bits) + 1)
			return bits;
	return entries == WORDS ? 0 : -1;
}

static int refuse_entries(const struct kernel_call *call, int64_t entries, struct npumem_error *error)
{
	bool bytes = operands_get(call, IN)->dtype == NPUMEM_FX8;
	const char *expected = bytes ? "256" : "65536, or 2^k + 1 with k from 1 to 15";
	npumem_error_set(error, NPUMEM_INVALID, "%s: table has %lld elements, but in of %s needs %s",
			 call->row->name, (long long)entries, bytes ? "fx8" : "fx16", expected);
	npumem_error_text(error, "role", call->roles[TABLE].name);
	npumem_error_number(error, "value", entries);
	npumem_error_text(error, "expected", expected);
	return NPUMEM_INVALID;
}

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	const struct kernel_operand *in = operands_get(call, IN);
	int64_t entries = operands_elements(operands_get(call, TABLE));
	int status = operands_check_fixed(call, IN, error);
	if (!status)
		status = operands_check_fixed(call, OUT, error);
	if (!status)
		status = operands_check_same_dtype(call, TABLE, OUT, error);
	if (!status)
		status = operands_check_same_frac_bits(call, TABLE, OUT, error);
	if (!status && (in->dtype == NPUMEM_FX8 ? entries != BYTES : step_bits(entries) < 0))
		status = refuse_entries(call, entries, error);
	return status ? status : operands_check_shape(call, OUT, &in->shape, "in has", error);
}

static bool is_bytes(const struct kernel_call *call)
{
	return operands_get(call, IN)->dtype == NPUMEM_FX8 && operands_get(call, OUT)->dtype == NPUMEM_FX8;
}

static size_t pack_bytes(const struct kernel_call *call)
{
	if (is_bytes(call))
		return sizeof(struct lut_bytes);
	return (size_t)(operands_elements(operands_get(call, TABLE)) + LOOKUP_PAD) * sizeof(int16_t);
}

static int16_t entry(const struct kernel_operand *table, int64_t i)
{
	return table->dtype == NPUMEM_FX8 ? ((const int8_t *)table->data)[i] : ((const int16_t *)table->data)[i];
}

static bool pack(const struct kernel_call *call, void *to)
{
	const struct kernel_operand *table = operands_get(call, TABLE);
	int64_t entries = operands_elements(table), pending = 0;
	if (is_bytes(call)) {
		struct lut_bytes *bytes = to;
		*bytes = (struct lut_bytes){.saturated = {0}};
		for (int i = 0; i < BYTES; i++)
			bytes->results[(uint8_t)(i + INT8_MIN)] = (uint8_t)entry(table, i);
		return true;
	}
	int16_t *words = to;
	for (int64_t i = 0; i < entries; i++) {
		words[i] = entry(table, i);
		if (!kernel_look(call, 1, &pending))
			return false;
	}
	words[entries] = 0;
	return true;
}

static int64_t steps(const struct kernel_call *call)
{
	enum { SCALAR = 8, VECTORS = 2 };
	const struct kernel_operand *in = operands_get(call, IN);
	double rows = steps_has_features(in) ? (double)(in->shape.n * in->shape.c) : 1;
	return steps_whole(steps_elements(in) * (call->isa == ISA_SCALAR ? SCALAR : VECTORS) + rows * STEPS_ROW);
}

static void run(struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, IN), *out = operands_get(call, OUT);
	const struct lookup lookup = {
		.entries = call->pack,
		.in_bytes = npumem_dtype_bytes(in->dtype),
		.out_bytes = npumem_dtype_bytes(out->dtype),
		.within = in->dtype == NPUMEM_FX8
				  ? 0
				  : (unsigned)step_bits(operands_elements(operands_get(call, TABLE))),
		.rounding = call->rounding,
	};
	bool bytes = is_bytes(call);
	struct walk walk;
	call->counts = (struct kernel_counts){.saturated = 0};
	for (walk_begin(&walk, call, OUT); walk_next(&walk);) {
		if (bytes)
			lut_bytes_row(call->isa, call->pack, walk_at(&walk, in), walk.n, walk_at(&walk, out),
				      &call->counts.saturated);
		else
			lookup_row(call->isa, &lookup, walk_at(&walk, in), walk.n, walk_at(&walk, out));
	}
}

const struct kernel kernel_lut = {
	.number = NPUMEM_KERNEL_LUT,
	.in_place = true,
	.by_feature = 1 << IN | 1 << OUT,
	.check = check,
	.pack_bytes = pack_bytes,
	.pack = pack,
	.packed = 1 << TABLE,
	.steps = steps,
	.run = run,
};
