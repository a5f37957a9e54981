/* Operands by the names of their roles, so that a kernel and its form with a constant share all their code. */
#include "daemon/device/kernel_support/elementwise/packed.h"

#include <string.h>

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

static struct row_source source(const struct kernel_call *call, int role)
{
	if (role == PACKED_NONE)
		return (struct row_source){.bytes = 0};
	return row_source(operands_get(call, (unsigned)role)->dtype);
}

void packed_begin(struct packed_rows *p, struct kernel_call *call)
{
	*p = (struct packed_rows){.call = call};
	packed_read(call, &p->packed);
	const struct packed *packed = &p->packed;
	const struct kernel_operand *out = operands_get(call, (unsigned)packed->out);
	requantize_init(&p->row.to, out->dtype, kernel_param(call, NPUMEM_PARAM_RSHIFT, 0, 0), NPUMEM_UP);
	p->row.in1 = source(call, packed->in1);
	p->row.in2 = source(call, packed->in2);
	p->row.in2.value = (int32_t)packed->value;
	p->row.acc = source(call, packed->acc);
	p->in1_magnitude = row_magnitude(operands_get(call, (unsigned)packed->in1)->dtype);
	p->in2_magnitude = packed->value < 0 ? -packed->value : packed->value;
	if (packed->in2 != PACKED_NONE)
		p->in2_magnitude = row_magnitude(packed->in2_dtype);
	call->counts = (struct kernel_counts){.saturated = 0};
	walk_begin(&p->walk, call, (unsigned)packed->out);
}

static void at(const struct packed_rows *p, struct row_source *source, int role)
{
	if (role != PACKED_NONE)
		source->data = walk_at(&p->walk, operands_get(p->call, (unsigned)role));
}

bool packed_next(struct packed_rows *p)
{
	if (!walk_next(&p->walk))
		return false;
	at(p, &p->row.in1, p->packed.in1);
	at(p, &p->row.in2, p->packed.in2);
	at(p, &p->row.acc, p->packed.acc);
	p->row.out = walk_at(&p->walk, operands_get(p->call, (unsigned)p->packed.out));
	return true;
}
