/* An ordinary convolution has one phase, of all outputs; one that is no more than a matrix product is one. */
#include "daemon/device/kernel_support/windows/convolve.h"

#include "daemon/device/engine/product.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/windows/convolution_run.h"
#include "daemon/device/least.h"

int convolve_check(const struct kernel_call *call, int64_t groups, struct npumem_error *error)
{
	const struct npumem_dims *in = &operands_get(call, CONVOLUTION_IN)->shape;
	const struct npumem_dims *weights = &operands_get(call, CONVOLUTION_WEIGHTS)->shape;
	struct window window;
	int status = convolution_check(call, groups, error);
	if (!status)
		status = window_read(call, in, weights->h, weights->w, &window, error);
	if (status)
		return status;
	struct npumem_dims want = {in->n, weights->c, window.h.out, window.w.out};
	return operands_check_shape(call, CONVOLUTION_OUT, &want, "in, weights and the window give", error);
}

/* Taps at the ends that meet padding alone are left out: on a feature of one point, all but one. They are as many
 * as a client says, and are counted on the loop. */
static struct phase_axis whole_axis(const struct window_axis *window)
{
	struct phase_axis axis = {
		.window = *window, .kernel = window->kernel, .tap_step = 1, .out = window->out, .out_step = 1};
	struct window_axis *w = &axis.window;
	int64_t last = (w->out - 1) * w->stride, n;
	n = last < w->before ? least(w->before / w->dilation, (w->before - last + w->dilation - 1) / w->dilation)
			     : 0;
	n = least(n, w->kernel - 1);
	w->kernel -= n;
	w->before -= n * w->dilation;
	axis.first_tap = n;
	/* Of taps from the first one on that is behind the input for the first output, and so for all. */
	n = w->kernel - (w->in + w->before + w->dilation - 1) / w->dilation;
	n = n > 0 ? least(least(n, w->after / w->dilation), w->kernel - 1) : 0;
	w->kernel -= n;
	w->after -= n * w->dilation;
	return axis;
}

static struct phase whole(const struct kernel_call *call)
{
	const struct npumem_dims *weights = &operands_get(call, CONVOLUTION_WEIGHTS)->shape;
	struct window window;
	window_read(call, &operands_get(call, CONVOLUTION_IN)->shape, weights->h, weights->w, &window, NULL);
	struct window_axis *h = &window.h, *w = &window.w;
	if (h->kernel == 1 && w->kernel == 1 && h->stride == 1 && w->stride == 1) {
		/* A pointwise convolution sees no rows: one long row instead of many short ones. */
		w->in = w->out = h->in * w->in;
		h->in = h->out = 1;
	}
	return (struct phase){whole_axis(h), whole_axis(w)};
}

/* One point and one tap: a matrix product, whose weights lie the right way round. */
static bool is_product(const struct phase *phase, int64_t groups)
{
	return groups == 1 && phase->h.window.in * phase->w.window.in == 1 &&
	       phase->h.kernel * phase->w.kernel == 1;
}

/* call->plan */
struct convolve {
	bool is_product;
	struct product product;
	struct convolution convolution;
	struct convolution_phase phase;
};
_Static_assert(sizeof(struct convolve) <= KERNEL_PLAN_BYTES, "a plan fits where it is made");

void convolve_plan(struct kernel_call *call, int64_t groups)
{
	const struct npumem_dims *in = &operands_get(call, CONVOLUTION_IN)->shape;
	struct convolve *convolve = call->plan;
	const struct phase phase = whole(call);
	convolve->is_product = is_product(&phase, groups);
	convolve->product =
		(struct product){&convolution_roles, in->n, in->c, operands_get(call, CONVOLUTION_OUT)->shape.c};
	if (convolve->is_product)
		return;
	convolution_init(&convolve->convolution, call, groups);
	convolution_plan(&convolve->phase, &convolve->convolution, &phase);
}

size_t convolve_scratch_bytes(const struct kernel_call *call)
{
	struct convolve *convolve = call->plan;
	return convolve->is_product ? product_scratch_bytes(call, &convolve->product)
				    : convolution_scratch_bytes(&convolve->phase);
}

size_t convolve_pack_bytes(const struct kernel_call *call)
{
	struct convolve *convolve = call->plan;
	return convolve->is_product ? product_pack_bytes(call, &convolve->product)
				    : convolution_pack_bytes(&convolve->phase);
}

bool convolve_pack(const struct kernel_call *call, void *pack)
{
	struct convolve *convolve = call->plan;
	if (convolve->is_product)
		return product_pack(call, &convolve->product, pack);
	convolution_load(&convolve->convolution);
	return convolution_pack(&convolve->phase, pack);
}

int64_t convolve_steps(const struct kernel_call *call)
{
	const struct convolve *convolve = call->plan;
	return convolve->is_product ? product_steps(call, &convolve->product)
				    : convolution_steps(&convolve->phase);
}

void convolve_run(struct kernel_call *call)
{
	struct convolve *convolve = call->plan;
	if (convolve->is_product) {
		product_run(call, &convolve->product);
		return;
	}
	call->counts = (struct kernel_counts){.macs = 0};
	convolution_load(&convolve->convolution);
	convolve->convolution.counts = &call->counts;
	convolution_run(&convolve->phase);
}
