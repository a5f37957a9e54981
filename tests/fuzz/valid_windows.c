/* Shapes of kernels whose windows slide: along each axis any kernel, stride, dilation and padding that the kernel
 * takes, also where the window dwarfs its input. */
#include <string.h>

#include "tests/fuzz/valid_shapes.h"

enum { LIMIT = 0x7fffffff };

struct axis {
	int64_t in, kernel, stride, dilation, before, after, more, out; /* more: output_padding */
};

static int64_t far_or(struct valid_run *run, int64_t most)
{
	return valid_below(run, 32) ? valid_extent(run, most) : LIMIT;
}

/* An axis of a window that slides: any padding below the window's reach, and as much as it needs to meet the
 * input. */
static struct axis sliding(struct valid_run *run, int64_t most_in, int64_t most_kernel, bool dilates)
{
	struct axis a = {
		.in = valid_extent(run, most_in), .kernel = valid_extent(run, most_kernel), .dilation = 1};
	int64_t reach, need;

	if (dilates && valid_below(run, 2))
		a.dilation = a.kernel == 1 ? far_or(run, 40) : valid_extent(run, 1 + 600 / a.kernel);
	reach = (a.kernel - 1) * a.dilation + 1;
	if (valid_below(run, 4)) {
		a.before = valid_below(run, reach);
		a.after = valid_below(run, 2) ? a.before : valid_below(run, reach);
	}
	need = reach - a.in - a.before - a.after;
	if (need > 0) {
		int64_t some = smaller(need, reach - 1 - a.after);

		a.after += some;
		a.before += need - some;
	}
	a.stride = valid_below(run, 2) ? 1 : far_or(run, 40);
	a.out = (a.in + a.before + a.after - reach) / a.stride + 1;
	return a;
}

static struct axis transposed(struct valid_run *run, int64_t most_in, int64_t most_kernel)
{
	struct axis a = {
		.in = valid_extent(run, most_in), .kernel = valid_extent(run, most_kernel), .dilation = 1};
	int64_t scattered;

	a.stride = a.in == 1 ? far_or(run, 40) : valid_extent(run, 1 + 200 / a.in);
	scattered = (a.in - 1) * a.stride + a.kernel;
	if (valid_below(run, 4)) {
		a.before = valid_below(run, smaller(a.kernel, scattered));
		a.after = valid_below(run, smaller(a.kernel, scattered - a.before));
	}
	a.more = valid_below(run, 4) ? 0 : valid_below(run, 12);
	a.out = scattered - a.before - a.after + a.more;
	return a;
}

static void window_params(struct valid_run *run, const struct axis *h, const struct axis *w, bool dilates)
{
	valid_param(run, NPUMEM_PARAM_STRIDE, 2, (int64_t[]){h->stride, w->stride});
	valid_param(run, NPUMEM_PARAM_PADDING, 4, (int64_t[]){h->before, h->after, w->before, w->after});
	if (dilates)
		valid_param(run, NPUMEM_PARAM_DILATION, 2, (int64_t[]){h->dilation, w->dilation});
}

/* Windows further apart, until their products are no more than so many. */
static void thin_out(struct axis *h, struct axis *w, int64_t most)
{
	while (h->kernel * w->kernel * h->out * w->out > most) {
		struct axis *axis = h->out > w->out ? h : w;
		int64_t span = axis->in + axis->before + axis->after - (axis->kernel - 1) * axis->dilation - 1;

		if (axis->out == 1)
			return;
		axis->stride *= 2;
		axis->out = span / axis->stride + 1;
	}
}

/* Of both axes in a budget: the second is what the first has left. */
static void both_axes(struct valid_run *run, struct axis *h, struct axis *w)
{
	enum { PLANE = 4096, TAPS = 1024 };
	bool is_transposed = run->row->number == NPUMEM_KERNEL_TRANSPOSE_CONV2D;
	bool dilates = strstr(run->row->parameters, "dilation");

	if (is_transposed) {
		*h = transposed(run, 128, 65);
		*w = transposed(run, 1 + PLANE / h->out / 4, 1 + smaller(TAPS / h->kernel, PLANE / h->out));
		return;
	}
	*h = sliding(run, PLANE, 300, dilates);
	*w = sliding(run, 1 + PLANE / (h->in > h->out ? h->in : h->out), 1 + TAPS / h->kernel, dilates);
	thin_out(h, w, VALID_PRODUCTS_MAX);
}

void valid_convolution(struct valid_run *run)
{
	struct axis h, w;
	int64_t n, i, o, groups = 1, in_frac = valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX);
	int64_t weights_frac = valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX), taps, products, plane;
	bool is_depthwise = run->row->number == NPUMEM_KERNEL_DEPTHWISE_CONV2D;
	bool is_transposed = run->row->number == NPUMEM_KERNEL_TRANSPOSE_CONV2D;

	both_axes(run, &h, &w);
	taps = h.kernel * w.kernel;
	products = VALID_PRODUCTS_MAX / (taps * h.out * w.out) + 1;
	plane = h.in * w.in > h.out * w.out ? h.in * w.in : h.out * w.out;
	if (strstr(run->row->parameters, "groups"))
		groups = valid_extent(run, smaller(products, VALID_ELEMENTS_MAX / plane));
	if (is_depthwise)
		groups = valid_extent(
			run, smaller(smaller(products, VALID_ELEMENTS_MAX / plane), VALID_ELEMENTS_MAX / taps));
	products /= groups;
	i = is_depthwise ? 1 : valid_extent(run, smaller(products, VALID_ELEMENTS_MAX / (plane * groups)));
	products /= i;
	o = valid_extent(run, smaller(products, smaller(VALID_ELEMENTS_MAX / (plane * groups),
							1 + 2 * VALID_ELEMENTS_MAX / (taps * i * groups))));
	n = valid_extent(run, smaller(products / o, VALID_ELEMENTS_MAX / (plane * groups * (i > o ? i : o))));
	valid_tensor(run, "in", run->data, in_frac, dims(n, i * groups, h.in, w.in));
	valid_tensor(run, "weights", run->weights, weights_frac, dims(i, o * groups, h.kernel, w.kernel));
	/* fx8 data may have an fx16 result. */
	valid_bias_and_out(run, in_frac + weights_frac, dims(1, o * groups, 1, 1),
			   valid_below(run, 4) ? run->data : NPUMEM_FX16, dims(n, o * groups, h.out, w.out));
	window_params(run, &h, &w, !is_transposed);
	if (is_transposed)
		valid_param(run, NPUMEM_PARAM_OUTPUT_PADDING, 2, (int64_t[]){h.more, w.more});
	if (strstr(run->row->parameters, "groups"))
		valid_param(run, NPUMEM_PARAM_GROUPS, 1, &groups);
}

void valid_pool(struct valid_run *run)
{
	struct axis h, w;
	int64_t n, c, plane;

	both_axes(run, &h, &w);
	if (valid_below(run, 6) == 1) {
		/* Whole features. */
		h = (struct axis){.in = h.in, .kernel = h.in, .stride = h.stride, .dilation = 1, .out = 1};
		w = (struct axis){.in = w.in, .kernel = w.in, .stride = w.stride, .dilation = 1, .out = 1};
	}
	if (h.dilation > h.in)
		h = (struct axis){.in = h.in, .kernel = 1, .stride = 1, .dilation = 1, .out = h.in};
	if (w.dilation > w.in)
		w = (struct axis){.in = w.in, .kernel = 1, .stride = 1, .dilation = 1, .out = w.in};
	plane = h.in * w.in > h.out * w.out ? h.in * w.in : h.out * w.out;
	c = valid_extent(run, VALID_ELEMENTS_MAX / plane);
	n = valid_extent(run, VALID_ELEMENTS_MAX / (plane * c));
	valid_tensor(run, "in", run->data, valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX), dims(n, c, h.in, w.in));
	valid_tensor(run, "out", run->data, valid_frac_bits(run, NPUMEM_FRAC_BITS_MAX), dims(n, c, h.out, w.out));
	window_params(run, &h, &w, true);
	if (run->row->number == NPUMEM_KERNEL_AVEPOOL && valid_below(run, 2))
		valid_param(run, NPUMEM_PARAM_COUNT_PADDING, 4,
			    (int64_t[]){h.before, valid_below(run, h.after + 1), w.before,
					valid_below(run, w.after + 1)});
	valid_param(run, NPUMEM_PARAM_KERNEL, 2, (int64_t[]){h.kernel, w.kernel});
}
