/* Where the topk largest elements are: of the whole tensor, out [1,K,1,1], or of each index along axis, out
 * [1,axis size,1,K]. Indices are flat N,C,H,W ones of in; best first, the lower index first where values tie. */
#include "daemon/device/kernel_support/elements.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/order_best.h"
#include "daemon/device/kernel_support/order_dims.h"

enum { IN, OUT };
enum { BLOCK = 256 };

/* Of the range that an index competes in. */
static int64_t competitors(const struct order_span *span)
{
	return span->outer * span->inner;
}

static int check_types(const struct kernel_call *call, struct npumem_error *error)
{
	int in = operands_get(call, IN)->dtype, out = operands_get(call, OUT)->dtype;
	unsigned role = in == NPUMEM_FP32 ? IN : OUT;
	if (in != NPUMEM_FP32 && out == NPUMEM_INT32)
		return 0;
	npumem_error_set(error, NPUMEM_INVALID, "%s: %s is %s, but must be %s", call->row->name,
			 call->roles[role].name, npumem_dtype_name(role == IN ? in : out),
			 role == IN ? "fixed point or an integer" : "int32");
	npumem_error_text(error, "role", call->roles[role].name);
	return NPUMEM_INVALID;
}

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	const struct kernel_operand *in = operands_get(call, IN);
	int status = operands_check_choices(call, error);
	if (!status)
		status = check_types(call, error);
	if (status)
		return status;
	if (operands_elements(in) - 1 > INT32_MAX)
		return npumem_error_set(
			error, NPUMEM_INVALID, "%s: in has %lld elements, more than the %lld that int32 counts",
			call->row->name, (long long)operands_elements(in), (long long)INT32_MAX + 1);
	int axis = order_dims_axis(call);
	struct order_span span = order_dims_span(&in->shape, axis);
	int64_t topk = kernel_param(call, NPUMEM_PARAM_TOPK, 0, 1);
	status = operands_check_param(call, NPUMEM_PARAM_TOPK, "", topk, 1, competitors(&span), error);
	if (status)
		return status;
	struct npumem_dims want = {1, topk, 1, 1};
	if (axis != ORDER_DIMS_NONE)
		want = (struct npumem_dims){1, span.extent, 1, topk};
	return operands_check_shape(call, OUT, &want, "in, axis and topk give", error);
}

static size_t scratch_bytes(const struct kernel_call *call)
{
	return (size_t)kernel_param(call, NPUMEM_PARAM_TOPK, 0, 1) * sizeof(struct order_best_entry);
}

/* False where no more is wanted. */
static bool offer_run(const struct kernel_call *call, int64_t first, int64_t n, struct order_best *best)
{
	const struct kernel_operand *in = operands_get(call, IN);
	int64_t values[BLOCK];
	for (int64_t i = 0; i < n; i += BLOCK) {
		int64_t count = n - i < BLOCK ? n - i : BLOCK;
		elements_load64(in->dtype, in->data, first + i, count, values);
		for (int64_t k = 0; k < count; k++)
			order_best_offer(best, values[k], first + i + k);
		if (!kernel_step(call, 0))
			return false;
	}
	return true;
}

static void run(struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, IN);
	int32_t *out = operands_get(call, OUT)->data;
	struct order_span span = order_dims_span(&in->shape, order_dims_axis(call));
	int64_t topk = kernel_param(call, NPUMEM_PARAM_TOPK, 0, 1);
	call->counts = (struct kernel_counts){.saturated = 0};
	for (int64_t a = 0; a < span.extent; a++) {
		struct order_best best;
		order_best_init(&best, call->scratch, topk);
		for (int64_t o = 0; o < span.outer; o++)
			if (!offer_run(call, (o * span.extent + a) * span.inner, span.inner, &best))
				return;
		order_best_finish(&best);
		for (int64_t k = 0; k < topk; k++)
			*out++ = (int32_t)best.entries[k].index;
		kernel_step(call, topk);
	}
}

const struct kernel kernel_argmax = {
	.number = NPUMEM_KERNEL_ARGMAX,
	.check = check,
	.scratch_bytes = scratch_bytes,
	.run = run,
};
