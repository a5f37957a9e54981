/* Operands by the names of their roles, so that a kernel and its form with a constant share all their code. */
#include "daemon/device/kernel_support/packed.h"

#include <string.h>

#include "daemon/device/kernel_support/elements.h"
#include "daemon/device/kernel_support/operands.h"

/* The choices of value_dtype=, "default" first. */
static const int packed_value_dtypes[] = {0, NPUMEM_INT8, NPUMEM_UINT8, NPUMEM_INT16, NPUMEM_UINT16};

static int find_role(const struct kernel_call *call, const char *name)
{
	for (unsigned i = 0; i < call->n_roles; i++)
		if (strcmp(call->roles[i].name, name) == 0)
			return (int)i;
	return PACKED_NONE;
}

void packed_read(const struct kernel_call *call, struct packed *packed)
{
	*packed = (struct packed){
		.in1 = find_role(call, "in1"),
		.in2 = find_role(call, "in2"),
		.acc = find_role(call, "acc"),
		.out = find_role(call, "out"),
		.value = kernel_param(call, NPUMEM_PARAM_VALUE, 0, 0),
	};
	if (packed->in2 != PACKED_NONE)
		packed->in2_dtype = operands_get(call, (unsigned)packed->in2)->dtype;
	else
		packed->in2_dtype = packed_value_dtypes[kernel_param(call, NPUMEM_PARAM_VALUE_DTYPE, 0, 1) - 1];
}

void packed_begin(struct packed_blocks *b, struct kernel_call *call)
{
	packed_read(call, &b->packed);
	const struct kernel_operand *out = operands_get(call, (unsigned)b->packed.out);
	requantize_init(&b->requantize, out->dtype, kernel_param(call, NPUMEM_PARAM_RSHIFT, 0, 0), NPUMEM_UP);
	b->call = call;
	b->first = b->n = 0;
	b->end = operands_elements(out);
	call->counts = (struct kernel_counts){.saturated = 0};
	for (int64_t i = 0; i < PACKED_BLOCK; i++)
		b->in2[i] = (int32_t)b->packed.value;
}

static void load(const struct packed_blocks *b, int role, int32_t *to)
{
	if (role == PACKED_NONE)
		return;
	const struct kernel_operand *operand = operands_get(b->call, (unsigned)role);
	elements_load32(operand->dtype, operand->data, b->first, b->n, to);
}

bool packed_next(struct packed_blocks *b)
{
	b->n = b->end - b->first < PACKED_BLOCK ? b->end - b->first : PACKED_BLOCK;
	if (b->n == 0)
		return false;
	load(b, b->packed.in1, b->in1);
	load(b, b->packed.in2, b->in2);
	load(b, b->packed.acc, b->acc);
	return true;
}

void packed_store(struct packed_blocks *b)
{
	uint8_t *out = operands_get(b->call, (unsigned)b->packed.out)->data;
	b->call->counts.saturated +=
		requantize_row32(&b->requantize, b->values, b->n, out + b->first * b->requantize.bytes);
	b->first += b->n;
	if (!kernel_step(b->call, b->n))
		b->end = b->first;
}
