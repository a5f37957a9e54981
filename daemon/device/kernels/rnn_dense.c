/* The dense step of recurrent networks: out[n,m] is the sum over the inputs i of the sum over k of
 * in_i[n,k] * weights_i[k,m], each such sum rounded by itself; the bias goes into the first. By rows of weights,
 * in blocks of outputs. */
#include <stdio.h>
#include <string.h>

#include "daemon/device/fixed/rows/gemv.h"
#include "daemon/device/fixed/rows/sums.h"
#include "daemon/device/kernel_support/gathered_pack.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/steps.h"
#include "daemon/device/kernel_support/windows/weighted.h"

enum { IN, WEIGHTS, BIAS, OUT, N_ROLES };
enum { BLOCK = 512 };

_Static_assert(MULTI_SUM_MAX >= NPUMEM_OPERANDS_MAX / 2, "a call may have more inputs than one result adds up");

/* One input with its weights, as a call of its own: the shared checks then name them "in1" and "weights1". */
struct member {
	struct kernel_call call;
	struct kernel_role roles[N_ROLES + 1];
	char in[NPUMEM_FIELD_KEY_BYTES], weights[NPUMEM_FIELD_KEY_BYTES];
};
enum { WEIGHTS0 = N_ROLES };

static const struct weighted_roles weighted_roles = {IN, WEIGHTS, BIAS, OUT, false};

static void member_init(struct member *m, const struct kernel_call *call, unsigned i)
{
	m->call = *call;
	m->call.roles = m->roles;
	memcpy(m->roles, call->roles, N_ROLES * sizeof(*call->roles));
	snprintf(m->in, sizeof(m->in), "%s%u", call->roles[IN].name, i);
	snprintf(m->weights, sizeof(m->weights), "%s%u", call->roles[WEIGHTS].name, i);
	m->roles[IN] = (struct kernel_role){m->in, 1, &call->roles[IN].operands[i]};
	m->roles[WEIGHTS] = (struct kernel_role){m->weights, 1, &call->roles[WEIGHTS].operands[i]};
	m->roles[BIAS].n = i == 0 ? call->roles[BIAS].n : 0;
	m->roles[WEIGHTS0] = (struct kernel_role){"weights0", 1, call->roles[WEIGHTS].operands};
}

static int check_member(const struct kernel_call *call, unsigned i, struct npumem_error *error)
{
	struct member m;
	member_init(&m, call, i);
	const struct npumem_dims *in = &operands_get(&m.call, IN)->shape, *out = &operands_get(call, OUT)->shape;
	int status = weighted_check(&m.call, &weighted_roles, in->c, error);
	if (!status)
		status = operands_check_same_dtype(&m.call, WEIGHTS, WEIGHTS0, error);
	struct npumem_dims want = {out->n, in->c, 1, 1};
	if (!status)
		status = operands_check_shape(&m.call, IN, &want, "out needs", error);
	want = (struct npumem_dims){in->c, out->c, 1, 1};
	return status ? status : operands_check_shape(&m.call, WEIGHTS, &want, "its input and out need", error);
}

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	unsigned n = call->roles[IN].n;
	if (call->roles[WEIGHTS].n != n)
		return npumem_error_set(error, NPUMEM_INVALID, "%s: there are %u in, but %u weights",
					call->row->name, n, call->roles[WEIGHTS].n);
	int status = 0;
	for (unsigned i = 0; i < n && !status; i++)
		status = check_member(call, i, error);
	const struct npumem_dims *out = &operands_get(call, OUT)->shape;
	struct npumem_dims want = {out->n, out->c, 1, 1};
	if (!status)
		status = operands_check_shape(call, OUT, &want, "must have", error);
	want.n = 1;
	if (!status && operands_get(call, BIAS))
		status = operands_check_shape(call, BIAS, &want, "out needs", error);
	return status;
}

static int64_t block_of(const struct kernel_call *call)
{
	int64_t outputs = operands_get(call, OUT)->shape.c;
	return outputs < BLOCK ? outputs : BLOCK;
}

static size_t scratch_bytes(const struct kernel_call *call)
{
	return (size_t)(call->roles[IN].n * block_of(call)) * sizeof(int64_t);
}

/* Of several inputs the weights have no room in one pack. */
static size_t pack_bytes(const struct kernel_call *call)
{
	return call->roles[IN].n == 1 ? gathered_pack_bytes(call, WEIGHTS) : 0;
}

static bool pack(const struct kernel_call *call, void *to)
{
	return gathered_pack(call, WEIGHTS, to);
}

static void multi_sum_of(struct multi_sum *multi, const struct kernel_call *call)
{
	const struct kernel_operand *out = operands_get(call, OUT), *bias = operands_get(call, BIAS);
	int64_t shifts[MULTI_SUM_MAX], first = 0;
	for (unsigned i = 0; i < call->roles[IN].n; i++) {
		int64_t frac_bits =
			call->roles[IN].operands[i].frac_bits + call->roles[WEIGHTS].operands[i].frac_bits;
		shifts[i] = frac_bits - out->frac_bits;
		first = i == 0 ? frac_bits : first;
	}
	struct requantize result;
	requantize_init(&result, out->dtype, 0, call->rounding);
	multi_sum_init(multi, result.bytes, shifts, call->roles[IN].n, bias ? first - bias->frac_bits : 0,
		       &result);
}

/* The sums of outputs m to m + count of batch n, those of input i at i * count, of `terms` products each in all.
 * False where they are no longer wanted. */
static bool add_products(const struct kernel_call *call, int64_t n, int64_t m, int64_t count, int64_t terms)
{
	int64_t most = kernel_piece(call) / count + 1, done = 0, outputs = operands_get(call, OUT)->shape.c;
	memset(call->scratch, 0, (size_t)(call->roles[IN].n * count) * sizeof(int64_t));
	for (unsigned i = 0; i < call->roles[IN].n; i++) {
		const struct kernel_operand *in = &call->roles[IN].operands[i];
		const struct kernel_operand *weights = &call->roles[WEIGHTS].operands[i];
		const uint8_t *matrix = call->pack ? gathered_pack_data(call, WEIGHTS) : weights->data;
		unsigned bytes = npumem_dtype_bytes(in->dtype), weight_bytes = npumem_dtype_bytes(weights->dtype);
		for (int64_t k = 0, step; k < in->shape.c; k += step) {
			step = in->shape.c - k < most ? in->shape.c - k : most;
			const struct gemv gemv = {.vector = (const uint8_t *)in->data +
							    (n * in->shape.c + k) * bytes,
						  .vector_bytes = bytes,
						  .weights = matrix + (k * outputs + m) * weight_bytes,
						  .weight_bytes = weight_bytes,
						  .n_terms = step,
						  .row = outputs};
			gemv_columns(call->isa, &gemv, count, (int64_t *)call->scratch + i * count);
			done += step;
			if (!kernel_part(call, count, done, terms))
				return false;
		}
	}
	return true;
}

/* Outputs [m, m + count) of batch n, of their sums. */
static void join(const struct kernel_call *call, const struct multi_sum *multi, int64_t n, int64_t m,
		 int64_t count, struct sums_counts *counts)
{
	const struct kernel_operand *out = operands_get(call, OUT), *bias = operands_get(call, BIAS);
	struct sums_bias from = {NULL, 1};
	if (bias) {
		from.bytes = npumem_dtype_bytes(bias->dtype);
		from.data = (const uint8_t *)bias->data + m * from.bytes;
	}
	sums_multi(call->isa, multi, call->scratch, count, &from, count,
		   (uint8_t *)out->data + (n * out->shape.c + m) * npumem_dtype_bytes(out->dtype), counts);
}

static void run(struct kernel_call *call)
{
	const struct kernel_operand *out = operands_get(call, OUT);
	int64_t outputs = out->shape.c, block = block_of(call), inputs = 0, macs = 0;
	struct sums_counts counts = {0, 0};
	struct multi_sum multi;
	multi_sum_of(&multi, call);
	for (unsigned i = 0; i < call->roles[IN].n; i++)
		inputs += call->roles[IN].operands[i].shape.c;
	for (int64_t n = 0; n < out->shape.n; n++) {
		for (int64_t m = 0; m < outputs; m += block) {
			int64_t count = outputs - m < block ? outputs - m : block;
			if (!add_products(call, n, m, count, inputs))
				return;
			join(call, &multi, n, m, count, &counts);
			macs += count * inputs;
			call->counts = (struct kernel_counts){
				.saturated = counts.saturated, .wrapped = counts.wrapped, .macs = macs};
			if (!kernel_step(call, count))
				return;
		}
	}
}

static int64_t steps(const struct kernel_call *call)
{
	enum { PRODUCTS = 2, OUTPUT = 8 }; /* that are made in a step; what one takes */
	const struct kernel_operand *out = operands_get(call, OUT);
	double terms = 0, inputs = (double)call->roles[IN].n, columns = (double)out->shape.c;
	for (unsigned i = 0; i < call->roles[IN].n; i++)
		terms += (double)call->roles[IN].operands[i].shape.c;
	double blocks = (double)(out->shape.c / block_of(call) + 1);
	double row = columns * (terms / PRODUCTS + OUTPUT * inputs) + blocks * (inputs + 1) * 2 * STEPS_ROW;
	/* Each term begins a line of weights. */
	return steps_whole((double)out->shape.n * (row + blocks * terms * 4));
}

const struct kernel kernel_rnn_dense = {
	.number = NPUMEM_KERNEL_RNN_DENSE,
	.check = check,
	.scratch_bytes = scratch_bytes,
	.pack_bytes = pack_bytes,
	.pack = pack,
	.packed = 1 << WEIGHTS,
	.steps = steps,
	.run = run,
};
