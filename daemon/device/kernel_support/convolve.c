/* Convolution by rows: a row of sums per output row, to which every tap adds a row of the input times one weight,
 * as far as it meets the input, so that padding costs nothing. */
#include "daemon/device/kernel_support/convolve.h"

#include <string.h>

#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/weighted.h"
#include "daemon/device/kernel_support/window.h"

static const struct weighted_roles convolve_roles = {CONVOLVE_IN, CONVOLVE_WEIGHTS, CONVOLVE_BIAS, CONVOLVE_OUT};

int convolve_check(const struct kernel_call *call, int64_t groups, struct npumem_error *error)
{
	const struct npumem_dims *in = &operands_get(call, CONVOLVE_IN)->shape;
	const struct npumem_dims *weights = &operands_get(call, CONVOLVE_WEIGHTS)->shape;
	int status = operands_check_choices(call, error);
	if (!status)
		status = weighted_check(call, &convolve_roles, weights->n * weights->h * weights->w, error);
	if (status)
		return status;
	if (in->c % groups != 0 || weights->c % groups != 0)
		return npumem_error_set(error, NPUMEM_INVALID,
					"%s: %lld input and %lld output channels do not divide into %lld groups",
					call->row->name, (long long)in->c, (long long)weights->c,
					(long long)groups);
	struct npumem_dims want = {in->c / groups, weights->c, weights->h, weights->w};
	status = operands_check_shape(call, CONVOLVE_WEIGHTS, &want, "the input channels of a group are", error);
	if (!status && operands_get(call, CONVOLVE_BIAS)) {
		want = (struct npumem_dims){1, weights->c, 1, 1};
		status = operands_check_shape(call, CONVOLVE_BIAS, &want, "weights need", error);
	}
	struct window window;
	if (!status)
		status = window_read(call, in, weights->h, weights->w, &window, error);
	if (status)
		return status;
	want = (struct npumem_dims){in->n, weights->c, window.h.out, window.w.out};
	return operands_check_shape(call, CONVOLVE_OUT, &want, "in, weights and the window give", error);
}

/* What one run knows; the shapes are those of `in` and `weights`, flattened where that changes nothing. */
struct convolve {
	const uint8_t *in, *weights;
	struct npumem_dims shape;  /* of in */
	int64_t n_outputs, groups; /* output channels */
	struct window window;
	struct weighted weighted;
	struct mac mac;
	void *sums;
};

static void convolve_init(struct convolve *c, const struct kernel_call *call, int64_t groups)
{
	const struct kernel_operand *in = operands_get(call, CONVOLVE_IN);
	const struct kernel_operand *weights = operands_get(call, CONVOLVE_WEIGHTS);
	*c = (struct convolve){.in = in->data,
			       .weights = weights->data,
			       .shape = in->shape,
			       .n_outputs = weights->shape.c,
			       .groups = groups,
			       .sums = call->scratch};
	window_read(call, &in->shape, weights->shape.h, weights->shape.w, &c->window, NULL);
	struct window_axis *h = &c->window.h, *w = &c->window.w;
	if (h->kernel == 1 && w->kernel == 1 && h->stride == 1 && w->stride == 1) {
		/* A pointwise convolution sees no rows: one long row instead of many short ones. */
		c->shape.w = w->in = w->out = h->in * w->in;
		c->shape.h = h->in = h->out = 1;
	}
	weighted_init(&c->weighted, call, &convolve_roles, weights->shape.n * weights->shape.h * weights->shape.w);
	c->mac = weighted_data_rows(&c->weighted);
}

/* Adds all taps of output row (n, o, y) to the sums. */
static void add_taps(const struct convolve *c, int64_t n, int64_t o, int64_t y)
{
	const struct window_axis *h = &c->window.h, *w = &c->window.w;
	int64_t n_inputs = c->shape.c / c->groups;
	int64_t first_input = o / (c->n_outputs / c->groups) * n_inputs;
	int64_t first_tap, end_tap;
	window_taps(h, y, &first_tap, &end_tap);
	for (int64_t ky = first_tap; ky < end_tap; ky++) {
		for (int64_t kx = 0; kx < w->kernel; kx++) {
			int64_t first, end;
			window_outputs(w, kx, &first, &end);
			if (first == end)
				continue;
			int64_t row = (n * c->shape.c + first_input) * h->in + window_at(h, y, ky);
			int64_t at = row * w->in + window_at(w, first, kx);
			for (int64_t i = 0; i < n_inputs; i++) {
				int64_t tap = ((i * c->n_outputs + o) * h->kernel + ky) * w->kernel + kx;
				mac_row(&c->mac, (uint8_t *)c->sums + first * c->mac.sum_bytes,
					c->in + (at + i * h->in * w->in) * c->weighted.data_bytes, w->stride,
					weighted_element(c->weights, c->weighted.weight_bytes, tap), end - first);
			}
		}
	}
}

size_t convolve_scratch_bytes(const struct kernel_call *call)
{
	/* A whole feature, for the pointwise case. */
	const struct npumem_dims *out = &operands_get(call, CONVOLVE_OUT)->shape;
	return (size_t)(out->h * out->w) * sizeof(int64_t);
}

void convolve_run(struct kernel_call *call, int64_t groups)
{
	struct convolve c;
	convolve_init(&c, call, groups);
	const struct window_axis *h = &c.window.h, *w = &c.window.w;
	uint8_t *out = operands_get(call, CONVOLVE_OUT)->data;
	struct kernel_counts *counts = &call->counts;
	*counts = (struct kernel_counts){.macs = 0};
	int64_t macs = c.shape.c / groups * window_pairs(h) * window_pairs(w);
	for (int64_t n = 0; n < c.shape.n; n++) {
		for (int64_t o = 0; o < c.n_outputs; o++) {
			for (int64_t y = 0; y < h->out; y++) {
				memset(c.sums, 0, (size_t)w->out * c.mac.sum_bytes);
				add_taps(&c, n, o, y);
				weighted_finish_channel(&c.weighted, c.sums, w->out, o, out, counts);
				out += w->out * c.weighted.data_bytes;
				if (!kernel_step(call, w->out))
					return;
			}
			counts->macs += macs;
		}
	}
}
