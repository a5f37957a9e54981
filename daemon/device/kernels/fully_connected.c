/* Fully connected: out[n,m] = sum over k of in[n,k] * weights[k,m] + bias[m], in flattened C,H,W to k.
 * By rows of weights, so that memory is walked as it lies; in blocks of outputs whose sums stay in the first
 * cache. */
#include <string.h>

#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/weighted.h"

enum { IN, WEIGHTS, BIAS, OUT };
enum { BLOCK = 1024 };

static const struct weighted_roles roles = {IN, WEIGHTS, BIAS, OUT};

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	const struct npumem_dims *in = &operands_get(call, IN)->shape;
	int64_t inputs = in->c * in->h * in->w, outputs = operands_get(call, WEIGHTS)->shape.c;
	int status = operands_check_choices(call, error);
	if (!status)
		status = weighted_check(call, &roles, inputs, error);
	struct npumem_dims want = {inputs, outputs, 1, 1};
	if (!status)
		status = operands_check_shape(call, WEIGHTS, &want, "in needs", error);
	want.n = 1;
	if (!status && operands_get(call, BIAS))
		status = operands_check_shape(call, BIAS, &want, "weights need", error);
	want.n = in->n;
	return status ? status : operands_check_shape(call, OUT, &want, "in and weights give", error);
}

static size_t scratch_bytes(const struct kernel_call *call)
{
	int64_t outputs = operands_get(call, OUT)->shape.c;
	return (size_t)(outputs < BLOCK ? outputs : BLOCK) * sizeof(int64_t);
}

static void run(struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, IN), *out = operands_get(call, OUT);
	const uint8_t *weights = operands_get(call, WEIGHTS)->data;
	int64_t inputs = in->shape.c * in->shape.h * in->shape.w, outputs = out->shape.c;
	struct weighted weighted;
	weighted_init(&weighted, call, &roles, inputs);
	struct mac mac = weighted_weight_rows(&weighted);
	call->counts = (struct kernel_counts){.macs = in->shape.n * inputs * outputs};
	for (int64_t n = 0; n < in->shape.n; n++) {
		for (int64_t m = 0; m < outputs; m += BLOCK) {
			int64_t count = outputs - m < BLOCK ? outputs - m : BLOCK;
			memset(call->scratch, 0, (size_t)count * mac.sum_bytes);
			for (int64_t k = 0; k < inputs; k++)
				mac_row(&mac, call->scratch, weights + (k * outputs + m) * mac.row_bytes, 1,
					weighted_element(in->data, weighted.data_bytes, n * inputs + k), count);
			weighted_finish_channels(&weighted, call->scratch, count, m,
						 (uint8_t *)out->data + (n * outputs + m) * weighted.data_bytes,
						 &call->counts);
			if (!kernel_step(call, count))
				return;
		}
	}
}

const struct kernel kernel_fully_connected = {
	.number = NPUMEM_KERNEL_FULLY_CONNECTED,
	.check = check,
	.scratch_bytes = scratch_bytes,
	.run = run,
};
