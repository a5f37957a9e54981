/* The arithmetic of windows. Every value that comes from a parameter is below 2^31 before it is used. */
#include "daemon/device/kernel_support/windows/window.h"

#include "daemon/device/kernel_support/operands.h"
#include "include/formulas/tap_pairs.h"

static void load(const struct kernel_call *call, const struct npumem_dims *in, int64_t kernel_h, int64_t kernel_w,
		 struct window *window)
{
	*window = (struct window){
		.h = {.in = in->h,
		      .kernel = kernel_h,
		      .stride = kernel_param(call, NPUMEM_PARAM_STRIDE, 0, 1),
		      .dilation = kernel_param(call, NPUMEM_PARAM_DILATION, 0, 1),
		      .before = kernel_param(call, NPUMEM_PARAM_PADDING, 0, 0),
		      .after = kernel_param(call, NPUMEM_PARAM_PADDING, 1, 0),
		      .counted_before = kernel_param(call, NPUMEM_PARAM_COUNT_PADDING, 0, 0),
		      .counted_after = kernel_param(call, NPUMEM_PARAM_COUNT_PADDING, 1, 0)},
		.w = {.in = in->w,
		      .kernel = kernel_w,
		      .stride = kernel_param(call, NPUMEM_PARAM_STRIDE, 1, 1),
		      .dilation = kernel_param(call, NPUMEM_PARAM_DILATION, 1, 1),
		      .before = kernel_param(call, NPUMEM_PARAM_PADDING, 2, 0),
		      .after = kernel_param(call, NPUMEM_PARAM_PADDING, 3, 0),
		      .counted_before = kernel_param(call, NPUMEM_PARAM_COUNT_PADDING, 2, 0),
		      .counted_after = kernel_param(call, NPUMEM_PARAM_COUNT_PADDING, 3, 0)},
	};
}

/* Extent of the input under one window. */
static int64_t reach(const struct window_axis *axis)
{
	return (axis->kernel - 1) * axis->dilation + 1;
}

static int check_axis(const struct kernel_call *call, const char *name, const struct window_axis *axis,
		      struct npumem_error *error)
{
	int status = operands_check_param(call, NPUMEM_PARAM_KERNEL, name, axis->kernel, 1, WINDOW_LIMIT, error);
	if (!status)
		status = operands_check_param(call, NPUMEM_PARAM_STRIDE, name, axis->stride, 1, WINDOW_LIMIT,
					      error);
	if (!status)
		status = operands_check_param(call, NPUMEM_PARAM_DILATION, name, axis->dilation, 1, WINDOW_LIMIT,
					      error);
	if (status)
		return status;
	int64_t most = reach(axis) - 1 < WINDOW_LIMIT ? reach(axis) - 1 : WINDOW_LIMIT;
	/* A window wholly in the padding would have no input at all. */
	bool vertical = name[0] == 'h';
	status = operands_check_param(call, NPUMEM_PARAM_PADDING, vertical ? "top" : "left", axis->before, 0, most,
				      error);
	return status ? status
		      : operands_check_param(call, NPUMEM_PARAM_PADDING, vertical ? "bottom" : "right",
					     axis->after, 0, most, error);
}

static int read_axis(const struct kernel_call *call, const char *name, struct window_axis *axis,
		     struct npumem_error *error)
{
	int status = check_axis(call, name, axis, error);
	if (status)
		return status;
	int64_t padded = axis->in + axis->before + axis->after;
	if (reach(axis) > padded) {
		npumem_error_set(
			error, NPUMEM_INVALID,
			"%s: the window's %s is %lld (kernel %lld, dilation %lld), more than the %lld of in "
			"with its padding",
			call->row->name, name, (long long)reach(axis), (long long)axis->kernel,
			(long long)axis->dilation, (long long)padded);
		npumem_error_number(error, "value", reach(axis));
		npumem_error_number(error, "expected", padded);
		return NPUMEM_INVALID;
	}
	axis->out = (padded - reach(axis)) / axis->stride + 1;
	return 0;
}

int window_read(const struct kernel_call *call, const struct npumem_dims *in, int64_t kernel_h, int64_t kernel_w,
		struct window *window, struct npumem_error *error)
{
	load(call, in, kernel_h, kernel_w, window);
	int status = read_axis(call, "h", &window->h, error);
	return status ? status : read_axis(call, "w", &window->w, error);
}

static int read_transposed_axis(const struct kernel_call *call, const char *name, struct window_axis *axis,
				struct npumem_error *error)
{
	int64_t more = kernel_param(call, NPUMEM_PARAM_OUTPUT_PADDING, name[0] == 'w', 0);
	int status = check_axis(call, name, axis, error);
	if (!status)
		status = operands_check_param(call, NPUMEM_PARAM_OUTPUT_PADDING, name, more, 0, WINDOW_LIMIT,
					      error);
	if (status)
		return status;
	int64_t scattered = (axis->in - 1) * axis->stride + axis->kernel, cropped = axis->before + axis->after;
	axis->out = scattered - cropped + more;
	if (axis->out >= 1)
		return 0;
	npumem_error_set(error, NPUMEM_INVALID, "%s: padding crops %lld of the %s of %lld and leaves nothing",
			 call->row->name, (long long)cropped, name, (long long)scattered);
	npumem_error_text(error, "parameter", "padding");
	npumem_error_number(error, "value", cropped);
	npumem_error_number(error, "expected", scattered - 1);
	return NPUMEM_INVALID;
}

int window_read_transposed(const struct kernel_call *call, const struct npumem_dims *in, int64_t kernel_h,
			   int64_t kernel_w, struct window *window, struct npumem_error *error)
{
	load(call, in, kernel_h, kernel_w, window);
	int status = read_transposed_axis(call, "h", &window->h, error);
	return status ? status : read_transposed_axis(call, "w", &window->w, error);
}

/* Numbers i in [0, n) with 0 <= i * step - offset < extent. */
static void inside(int64_t n, int64_t step, int64_t offset, int64_t extent, int64_t *first, int64_t *end)
{
	int64_t below = offset > 0 ? (offset + step - 1) / step : 0;
	int64_t past = extent + offset > 0 ? (extent + offset - 1) / step + 1 : 0;
	*first = below < n ? below : n;
	*end = past > n ? n : past < *first ? *first : past;
}

void window_taps(const struct window_axis *axis, int64_t out, int64_t *first, int64_t *end)
{
	inside(axis->kernel, axis->dilation, axis->before - out * axis->stride, axis->in, first, end);
}

void window_outputs(const struct window_axis *axis, int64_t tap, int64_t *first, int64_t *end)
{
	inside(axis->out, axis->stride, axis->before - tap * axis->dilation, axis->in, first, end);
}

int64_t window_pairs(const struct window_axis *axis)
{
	return tap_pairs(&(struct tap_pairs){axis->out, axis->kernel, axis->stride, axis->dilation, axis->before,
					     axis->in});
}
