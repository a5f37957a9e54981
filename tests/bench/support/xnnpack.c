/* Owns what an operator reads and writes. */
#include "tests/bench/support/xnnpack.h"

#include <stdlib.h>
#include <string.h>
#include <xnnpack.h>

#include "tests/bench/support/peer.h"

enum { BEHIND = XNN_EXTRA_BYTES + 64 }; /* that may be read behind the end */

struct xnnpack {
	xnn_operator_t op;
	int8_t *in, *out;
};

static const float in_scale = 1.0f / 128, weight_scale = 1.0f / 128, out_scale = 1.0f / 8;

bool xnnpack_open(void)
{
	return xnn_initialize(NULL) == xnn_status_success;
}

static int8_t *padded(const struct call *call, const char *role)
{
	const struct call_tensor *tensor = call_find(call, role);
	void *data = call_data(call, (unsigned)(tensor - call->tensors));
	int8_t *memory = calloc(1, tensor->bytes + BEHIND);
	if (!memory)
		peer_die("no memory");
	memcpy(memory, data, tensor->bytes);
	free(data);
	return memory;
}

static enum xnn_status make_product(struct xnnpack *x, const struct npumem_dims *in, size_t n_out,
				    const int8_t *weights, const int32_t *bias)
{
	size_t n_in = (size_t)(in->c * in->h * in->w);
	enum xnn_status status =
		xnn_create_fully_connected_nc_qs8(n_in, n_out, n_in, n_out, 0, in_scale, weight_scale, weights,
						  bias, 0, out_scale, INT8_MIN, INT8_MAX, 0, &x->op);
	if (status != xnn_status_success)
		return status;
	return xnn_setup_fully_connected_nc_qs8(x->op, (size_t)in->n, x->in, x->out, NULL);
}

static enum xnn_status make_convolution(struct xnnpack *x, const struct call *call, const struct npumem_dims *in,
					size_t n_out, const int8_t *weights, const int32_t *bias)
{
	const struct npumem_dims *w = &call_find(call, "weights")->spec.shape;
	uint32_t pads[4], stride[2];
	for (unsigned i = 0; i < 4; i++)
		pads[i] = (uint32_t)call_param(call, NPUMEM_PARAM_PADDING, i, 0);
	for (unsigned i = 0; i < 2; i++)
		stride[i] = (uint32_t)call_param(call, NPUMEM_PARAM_STRIDE, i, 1);
	size_t groups = !strcmp(call->kernel, "depthwise_conv2d")
				? (size_t)in->c
				: (size_t)call_param(call, NPUMEM_PARAM_GROUPS, 0, 1);
	size_t n_in = (size_t)in->c;
	enum xnn_status status = xnn_create_convolution2d_nhwc_qs8(
		pads[0], pads[3], pads[1], pads[2], (uint32_t)w->h, (uint32_t)w->w, stride[0], stride[1], 1, 1,
		(uint32_t)groups, n_in / groups, n_out / groups, n_in, n_out, 0, in_scale, weight_scale, weights,
		bias, 0, out_scale, INT8_MIN, INT8_MAX, 0, &x->op);
	if (status != xnn_status_success)
		return status;
	return xnn_setup_convolution2d_nhwc_qs8(x->op, (size_t)in->n, (size_t)in->h, (size_t)in->w, x->in, x->out,
						NULL);
}

struct xnnpack *xnnpack_new(const struct call *call)
{
	const struct npumem_dims *in = &call_find(call, "in")->spec.shape;
	size_t n_out = (size_t)call_find(call, "out")->spec.shape.c;
	enum xnn_status status = xnn_status_unsupported_parameter;
	struct xnnpack *x = calloc(1, sizeof(*x));
	int32_t *bias = calloc(n_out, sizeof(*bias));
	if (!x || !bias)
		peer_die("no memory");
	int8_t *weights = padded(call, "weights");
	x->in = padded(call, "in");
	x->out = padded(call, "out");
	if (!strcmp(call->kernel, "fully_connected"))
		status = make_product(x, in, n_out, weights, bias);
	else if (strcmp(call->kernel, "transpose_conv2d") != 0)
		status = make_convolution(x, call, in, n_out, weights, bias);
	free(weights);
	free(bias);
	if (status == xnn_status_success)
		return x;
	xnnpack_free(x);
	return NULL;
}

void xnnpack_free(struct xnnpack *x)
{
	if (!x)
		return;
	if (x->op)
		xnn_delete_operator(x->op);
	free(x->in);
	free(x->out);
	free(x);
}

void xnnpack_run(void *xnnpack)
{
	const struct xnnpack *x = xnnpack;
	if (xnn_run_operator(x->op, NULL) != xnn_status_success)
		peer_die("XNNPACK refuses");
}
