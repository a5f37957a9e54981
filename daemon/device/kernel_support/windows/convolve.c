/* An ordinary convolution has one phase, of all outputs; one that is no more than a matrix product is one. */
#include "daemon/device/kernel_support/windows/convolve.h"

#include "daemon/device/engine/conv.h"
#include "daemon/device/engine/product.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/windows/convolution_run.h"

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

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
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

static struct product product_of(const struct kernel_call *call)
{
	const struct npumem_dims *in = &operands_get(call, CONVOLUTION_IN)->shape;
	return (struct product){&convolution_roles, in->n, in->c, operands_get(call, CONVOLUTION_OUT)->shape.c};
}

/* What the call is; true where it is a product. */
static bool load(const struct kernel_call *call, int64_t groups, struct convolution *convolution,
		 struct phase *phase)
{
	*phase = whole(call);
	convolution_init(convolution, call, groups);
	bool product = is_product(phase, groups);
	convolution->by_engine = !product && conv_fits(convolution, phase);
	return product;
}

size_t convolve_scratch_bytes(const struct kernel_call *call, int64_t groups)
{
	struct convolution convolution;
	struct phase phase;
	const struct product product = product_of(call);
	if (load(call, groups, &convolution, &phase))
		return product_scratch_bytes(call, &product);
	return convolution_scratch_bytes(&convolution, &phase);
}

size_t convolve_pack_bytes(const struct kernel_call *call, int64_t groups)
{
	struct convolution convolution;
	struct phase phase;
	const struct product product = product_of(call);
	if (load(call, groups, &convolution, &phase))
		return product_pack_bytes(call, &product);
	return convolution_pack_bytes(&convolution, &phase);
}

bool convolve_pack(const struct kernel_call *call, int64_t groups, void *pack)
{
	struct convolution convolution;
	struct phase phase;
	const struct product product = product_of(call);
	if (load(call, groups, &convolution, &phase))
		return product_pack(call, &product, pack);
	return convolution_pack(&convolution, &phase, pack);
}

int64_t convolve_steps(const struct kernel_call *call, int64_t groups)
{
	struct convolution convolution;
	struct phase phase;
	const struct product product = product_of(call);
	if (load(call, groups, &convolution, &phase))
		return product_steps(call, &product);
	return convolution_steps(&convolution, &phase);
}

void convolve_run(struct kernel_call *call, int64_t groups)
{
	struct convolution convolution;
	struct phase phase;
	const struct product product = product_of(call);
	if (load(call, groups, &convolution, &phase)) {
		product_run(call, &product);
		return;
	}
	call->counts = (struct kernel_counts){.macs = 0};
	convolution.counts = &call->counts;
	convolution_run(&convolution, &phase);
}
