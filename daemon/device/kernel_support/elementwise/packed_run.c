/* Sums of 16-bit and products of 8-bit operands are exact in 32 bits; see the rules of the vendor's model. */
#include "daemon/device/kernel_support/elementwise/packed_run.h"

#include "daemon/device/kernel_support/elementwise/packed.h"

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

void packed_run_mul(struct kernel_call *call)
{
	struct packed_rows p;
	packed_begin(&p, call);
	row_init(&p.row, call->isa, p.in1_magnitude * p.in2_magnitude);
	while (packed_next(&p))
		row_product(&p.row, p.walk.n, &call->counts.saturated);
}

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

void packed_run_min(struct kernel_call *call)
{
	struct packed_rows p;
	packed_begin(&p, call);
	row_init(&p.row, call->isa, p.in1_magnitude > p.in2_magnitude ? p.in1_magnitude : p.in2_magnitude);
	while (packed_next(&p))
		row_smaller(&p.row, p.walk.n, &call->counts.saturated);
}

void packed_run_max(struct kernel_call *call)
{
	struct packed_rows p;
	packed_begin(&p, call);
	row_init(&p.row, call->isa, p.in1_magnitude > p.in2_magnitude ? p.in1_magnitude : p.in2_magnitude);
	while (packed_next(&p))
		row_larger(&p.row, p.walk.n, &call->counts.saturated);
}

void packed_run_arithmetic_shift(struct kernel_call *call)
{
	struct packed_rows p;
	packed_begin(&p, call);
	row_init(&p.row, call->isa, 0);
	while (packed_next(&p))
		row_arithmetic_shift(&p.row, p.walk.n, &call->counts.saturated);
}

void packed_run_logical_shift(struct kernel_call *call)
{
	struct packed_rows p;
	packed_begin(&p, call);
	row_init(&p.row, call->isa, 0);
	while (packed_next(&p))
		row_logical_shift(&p.row, p.walk.n, &call->counts.saturated);
}
