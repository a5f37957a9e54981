/* Operands by the names of their roles, so that a kernel and its form with a constant share all their code. Sums
 * of 16-bit and products of 8-bit operands are exact in 32 bits; see the rules of the vendor's model. */
#include "daemon/device/kernel_support/elementwise/packed.h"

#include <string.h>

#include "daemon/device/fixed/rows/rows.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/walk.h"

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

struct packed_rows {
	struct kernel_call *call;
	struct packed packed;
	struct walk walk;
	struct row row;
	int64_t in1_magnitude, in2_magnitude; /* the largest of any element */
};

static struct row_source source(const struct kernel_call *call, int role)
{
	if (role == PACKED_NONE)
		return (struct row_source){.bytes = 0};
	return row_source(operands_get(call, (unsigned)role)->dtype);
}

/* Sets what the row reads and how its values become out's; row_init() is the run's. Clears the call's counts. */
static void packed_begin(struct packed_rows *p, struct kernel_call *call)
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

/* The next piece; false when there is none, or no more is wanted. */
static bool packed_next(struct packed_rows *p)
{
	if (!walk_next(&p->walk))
		return false;
	at(p, &p->row.in1, p->packed.in1);
	at(p, &p->row.in2, p->packed.in2);
	at(p, &p->row.acc, p->packed.acc);
	p->row.out = walk_at(&p->walk, operands_get(p->call, (unsigned)p->packed.out));
	return true;
}

/* Of packed_mac: 2^16 * 2^14 and a product of 2^16 stay in 32 bits. */
enum { EXACT_LSHIFT_MAX = 14 };

/* Both have the same format: sums are plain ones, and a difference the other way round has its operands changed
 * over. */
static void run_sum(struct kernel_call *call, int sign, bool from)
{
	struct packed_rows p;
	packed_begin(&p, call);
	p.row.sign = sign;
	align_init(&p.row.align, 0, 0);
	row_init_sum(&p.row, call->isa, p.in1_magnitude, p.in2_magnitude);
	while (packed_next(&p)) {
		struct row row = p.row;
		row.in1 = from ? p.row.in2 : p.row.in1;
		row.in2 = from ? p.row.in1 : p.row.in2;
		row_sum(&row, p.walk.n, &call->counts.saturated);
	}
}

void packed_run_add(struct kernel_call *call)
{
	run_sum(call, 1, false);
}

void packed_run_sub(struct kernel_call *call)
{
	run_sum(call, -1, false);
}

void packed_run_sub_from(struct kernel_call *call)
{
	run_sum(call, -1, true);
}

#define LARGER (p.in1_magnitude > p.in2_magnitude ? p.in1_magnitude : p.in2_magnitude)
/* `most` is the largest magnitude of a value; results of shifts are not rounded. */
#define RUN(name, row_name, most)                                                                                 \
	void packed_run_##name(struct kernel_call *call)                                                          \
	{                                                                                                         \
		struct packed_rows p;                                                                             \
		packed_begin(&p, call);                                                                           \
		row_init(&p.row, call->isa, most);                                                                \
		while (packed_next(&p))                                                                           \
			row_name(&p.row, p.walk.n, &call->counts.saturated);                                      \
	}
RUN(mul, row_product, p.in1_magnitude *p.in2_magnitude)
RUN(min, row_smaller, LARGER)
RUN(max, row_larger, LARGER)
RUN(arithmetic_shift, row_arithmetic_shift, 0)
RUN(logical_shift, row_logical_shift, 0)

/* What wraps, element by element: acc has 16 bits, in1 and in2 have 8. */
static void wrapping_mac(const struct row *row, int64_t unit, int64_t n, struct kernel_counts *counts)
{
	for (int64_t i = 0; i < n; i++) {
		int64_t sum = row_get(&row->acc, i) * unit + row_get(&row->in1, i) * row_get(&row->in2, i);
		int32_t kept = (int32_t)(uint32_t)sum;
		counts->wrapped += kept != sum;
		counts->saturated += requantize_row32(&row->to, &kept, 1, (uint8_t *)row->out + i * row->to.bytes);
	}
}

void packed_run_mac(struct kernel_call *call)
{
	int64_t lshift = kernel_param(call, NPUMEM_PARAM_LSHIFT, 0, 0);
	struct packed_rows p;
	packed_begin(&p, call);
	p.row.align = (struct align){.first_is_coarse = true, .left = (unsigned)lshift};
	row_init_mac(&p.row, call->isa, UINT16_MAX, p.in1_magnitude * p.in2_magnitude);
	while (packed_next(&p)) {
		if (lshift <= EXACT_LSHIFT_MAX)
			row_mac(&p.row, p.walk.n, &call->counts.saturated);
		else
			wrapping_mac(&p.row, (int64_t)1 << lshift, p.walk.n, &call->counts);
		call->counts.macs += p.walk.n;
	}
}
