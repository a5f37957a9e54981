/* What pools share: their check. */
#include "daemon/device/kernel_support/pool.h"

#include "daemon/device/kernel_support/operands.h"

static int read_window(const struct kernel_call *call, struct window *window, struct npumem_error *error)
{
	int64_t kernel_h = kernel_param(call, NPUMEM_PARAM_KERNEL, 0, 1);
	int64_t kernel_w = kernel_param(call, NPUMEM_PARAM_KERNEL, 1, 1);
	return window_read(call, &operands_get(call, POOL_IN)->shape, kernel_h, kernel_w, window, error);
}

int pool_check(const struct kernel_call *call, struct npumem_error *error)
{
	const struct npumem_dims *in = &operands_get(call, POOL_IN)->shape;
	struct window window;
	int status = operands_check_choices(call, error);
	if (!status)
		status = operands_check_fixed(call, POOL_IN, error);
	if (!status)
		status = operands_check_same_dtype(call, POOL_OUT, POOL_IN, error);
	if (!status)
		status = read_window(call, &window, error);
	if (status)
		return status;
	struct npumem_dims want = {in->n, in->c, window.h.out, window.w.out};
	return operands_check_shape(call, POOL_OUT, &want, "in and the window give", error);
}

void pool_window(const struct kernel_call *call, struct window *window)
{
	read_window(call, window, NULL);
}

void pool_row_init(struct pool_row *row, const struct kernel_call *call, const struct window *window)
{
	const struct window_axis *h = &window->h, *w = &window->w;
	int64_t rows = h->kernel < h->in ? h->kernel : h->in, taps = w->kernel < w->in ? w->kernel : w->in;
	/* Extents are at most 2^30. */
	*row = (struct pool_row){.call = call, .outputs = w->out, .work = rows * w->in + w->out * taps};
}

bool pool_row_work(struct pool_row *row, int64_t steps)
{
	row->done += steps;
	if (row->done - row->looked < kernel_piece(row->call))
		return true;
	row->looked = row->done;
	return kernel_part(row->call, row->outputs, row->done < row->work ? row->done : row->work, row->work);
}

bool pool_row_end(struct pool_row *row)
{
	row->done = row->looked = 0;
	return kernel_step(row->call, row->outputs);
}
