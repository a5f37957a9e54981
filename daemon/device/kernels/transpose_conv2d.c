/* Transposed 2D convolution: every input is multiplied by the whole kernel and added where it comes to lie;
 * padding crops. Outputs that lie a stride apart meet the same taps, in falling order for rising inputs: they are
 * an ordinary convolution by those taps, reversed. */
#include "daemon/device/kernel_support/convolution.h"
#include "daemon/device/kernel_support/operands.h"

static int read_window(const struct kernel_call *call, struct window *window, struct npumem_error *error)
{
	const struct npumem_dims *weights = &operands_get(call, CONVOLUTION_WEIGHTS)->shape;
	return window_read_transposed(call, &operands_get(call, CONVOLUTION_IN)->shape, weights->h, weights->w,
				      window, error);
}

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	struct window window;
	int status = convolution_check(call, 1, error);
	if (!status)
		status = read_window(call, &window, error);
	if (status)
		return status;
	struct npumem_dims want = {operands_get(call, CONVOLUTION_IN)->shape.n,
				   operands_get(call, CONVOLUTION_WEIGHTS)->shape.c, window.h.out, window.w.out};
	return operands_check_shape(call, CONVOLUTION_OUT, &want, "in, weights and the window give", error);
}

/* Outputs first, first + stride, … meet taps `tap`, tap + stride, … (n of them); the lowest of these comes from
 * input (first + before) / stride for the first output, the next ones from the inputs before it. */
static struct phase_axis axis_phase(const struct window_axis *axis, int64_t first)
{
	int64_t stride = axis->stride, tap = (first + axis->before) % stride;
	int64_t n = tap < axis->kernel ? (axis->kernel - tap + stride - 1) / stride : 0;
	return (struct phase_axis){
		.window = {.in = axis->in,
			   .out = (axis->out - first + stride - 1) / stride,
			   .kernel = n,
			   .stride = 1,
			   .dilation = 1,
			   .before = n - 1 - (first + axis->before) / stride},
		.kernel = axis->kernel,
		.first_tap = tap + (n - 1) * stride,
		.tap_step = -stride,
		.out = axis->out,
		.first_out = first,
		.out_step = stride,
	};
}

/* The next phase after (*y, *x), row by row; false after the last. */
static bool next_phase(const struct window *window, int64_t *y, int64_t *x)
{
	if (++*x < window->w.stride && *x < window->w.out)
		return true;
	*x = 0;
	return ++*y < window->h.stride && *y < window->h.out;
}

/* First outputs of phases among which there is every number of taps and of outputs that a phase of this axis has:
 * the first one, and those at which a number changes; how many. */
enum { CHANGES = 4 };
static unsigned find_changes(const struct window_axis *axis, int64_t *firsts)
{
	int64_t stride = axis->stride, tap_0 = (stride - axis->before % stride) % stride;
	const int64_t at[CHANGES] = {0, axis->out % stride, tap_0, (tap_0 + axis->kernel % stride) % stride};
	unsigned n = 0;
	for (unsigned i = 0; i < CHANGES; i++)
		if (at[i] < axis->out)
			firsts[n++] = at[i];
	return n;
}

/* By the kinds of phases, of which there are few: of phases as many as a client says, and this is asked on the
 * thread that answers all of them. */
static size_t scratch_bytes(const struct kernel_call *call)
{
	struct kernel_call copy = *call;
	struct convolution convolution;
	struct window window;
	int64_t ys[CHANGES], xs[CHANGES];
	size_t most = 0;
	convolution_init(&convolution, &copy, 1);
	read_window(call, &window, NULL);
	unsigned n_ys = find_changes(&window.h, ys), n_xs = find_changes(&window.w, xs);
	for (unsigned i = 0; i < n_ys * n_xs; i++) {
		struct phase phase = {axis_phase(&window.h, ys[i / n_xs]), axis_phase(&window.w, xs[i % n_xs])};
		size_t bytes = convolution_scratch_bytes(&convolution, &phase);
		most = bytes > most ? bytes : most;
	}
	return most;
}

static void run(struct kernel_call *call)
{
	struct convolution convolution;
	struct window window;
	convolution_init(&convolution, call, 1);
	read_window(call, &window, NULL);
	call->counts = (struct kernel_counts){.macs = 0};
	int64_t y = 0, x = 0;
	do {
		struct phase phase = {axis_phase(&window.h, y), axis_phase(&window.w, x)};
		if (!convolution_run(&convolution, &phase))
			return;
	} while (next_phase(&window, &y, &x));
}

const struct kernel kernel_transpose_conv2d = {
	.number = NPUMEM_KERNEL_TRANSPOSE_CONV2D,
	.by_feature = 1 << CONVOLUTION_IN | 1 << CONVOLUTION_OUT,
	.check = check,
	.scratch_bytes = scratch_bytes,
	.run = run,
};
