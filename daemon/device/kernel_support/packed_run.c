/* Sums of 16-bit and products of 8-bit operands are exact in 32 bits; see the rules of the vendor's model. */
#include "daemon/device/kernel_support/packed_run.h"

#include "daemon/device/kernel_support/packed.h"

void packed_run_add(struct kernel_call *call)
{
	struct packed_blocks b;
	for (packed_begin(&b, call); packed_next(&b); packed_store(&b))
		for (int64_t i = 0; i < b.n; i++)
			b.values[i] = b.in1[i] + b.in2[i];
}

void packed_run_sub(struct kernel_call *call)
{
	struct packed_blocks b;
	for (packed_begin(&b, call); packed_next(&b); packed_store(&b))
		for (int64_t i = 0; i < b.n; i++)
			b.values[i] = b.in1[i] - b.in2[i];
}

void packed_run_sub_from(struct kernel_call *call)
{
	struct packed_blocks b;
	for (packed_begin(&b, call); packed_next(&b); packed_store(&b))
		for (int64_t i = 0; i < b.n; i++)
			b.values[i] = b.in2[i] - b.in1[i];
}

void packed_run_mul(struct kernel_call *call)
{
	struct packed_blocks b;
	for (packed_begin(&b, call); packed_next(&b); packed_store(&b))
		for (int64_t i = 0; i < b.n; i++)
			b.values[i] = b.in1[i] * b.in2[i];
}

void packed_run_mac(struct kernel_call *call)
{
	int64_t unit = (int64_t)1 << kernel_param(call, NPUMEM_PARAM_LSHIFT, 0, 0);
	struct packed_blocks b;
	for (packed_begin(&b, call); packed_next(&b); packed_store(&b)) {
		for (int64_t i = 0; i < b.n; i++) {
			int64_t sum = b.acc[i] * unit + b.in1[i] * b.in2[i];
			b.values[i] = (int32_t)(uint32_t)sum;
			call->counts.wrapped += b.values[i] != sum;
		}
		call->counts.macs += b.n;
	}
}

void packed_run_min(struct kernel_call *call)
{
	struct packed_blocks b;
	for (packed_begin(&b, call); packed_next(&b); packed_store(&b))
		for (int64_t i = 0; i < b.n; i++)
			b.values[i] = b.in1[i] < b.in2[i] ? b.in1[i] : b.in2[i];
}

void packed_run_max(struct kernel_call *call)
{
	struct packed_blocks b;
	for (packed_begin(&b, call); packed_next(&b); packed_store(&b))
		for (int64_t i = 0; i < b.n; i++)
			b.values[i] = b.in1[i] > b.in2[i] ? b.in1[i] : b.in2[i];
}

/* The bits of out's container, as its value: nothing is left for the store to saturate. */
static int32_t cut(const struct packed_blocks *b, uint32_t bits)
{
	return b->requantize.low < 0 ? (int16_t)bits : (uint16_t)bits;
}

static uint32_t shifted(int32_t x, int32_t in2)
{
	int amount = (int8_t)in2;
	if (amount >= 0)
		return amount < 16 ? (uint32_t)x << amount : 0;
	/* x has 17 bits and its sign. */
	return (uint32_t)(x >> (amount < -31 ? 31 : -amount));
}

void packed_run_arithmetic_shift(struct kernel_call *call)
{
	struct packed_blocks b;
	for (packed_begin(&b, call); packed_next(&b); packed_store(&b))
		for (int64_t i = 0; i < b.n; i++)
			b.values[i] = cut(&b, shifted(b.in1[i], b.in2[i]));
}

void packed_run_logical_shift(struct kernel_call *call)
{
	struct packed_blocks b;
	for (packed_begin(&b, call); packed_next(&b); packed_store(&b))
		for (int64_t i = 0; i < b.n; i++)
			b.values[i] = cut(&b, shifted((uint16_t)b.in1[i], b.in2[i]));
}
