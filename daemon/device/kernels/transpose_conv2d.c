/* Transposed 2D convolution: every input is multiplied by the whole kernel and added where it comes to lie;
 * padding crops. Outputs that lie a stride apart meet the same taps, in falling order for rising inputs: they are
 * an ordinary convolution by those taps, reversed. */
#include "daemon/device/engine/conv.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/steps.h"
#include "daemon/device/kernel_support/windows/convolution_run.h"

static int64_t groups(const struct kernel_call *call)
{
	return kernel_param(call, NPUMEM_PARAM_GROUPS, 0, 1);
}

static int read_window(const struct kernel_call *call, struct window *window, struct npumem_error *error)
{
	const struct npumem_dims *weights = &operands_get(call, CONVOLUTION_WEIGHTS)->shape;
	return window_read_transposed(call, &operands_get(call, CONVOLUTION_IN)->shape, weights->h, weights->w,
				      window, error);
}

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	struct window window;
	int status = operands_check_param(call, NPUMEM_PARAM_GROUPS, "", groups(call), 1, WINDOW_LIMIT, error);
	if (!status)
		status = convolution_check(call, groups(call), error);
	if (!status)
		status = read_window(call, &window, error);
	if (status)
		return status;
	struct npumem_dims want = {operands_get(call, CONVOLUTION_IN)->shape.n,
				   operands_get(call, CONVOLUTION_WEIGHTS)->shape.c, window.h.out, window.w.out};
	return operands_check_shape(call, CONVOLUTION_OUT, &want, "in, weights and the window give", error);
}

/* Outputs from which on output_padding= has added all: none of them meets a tap. */
static int64_t scattered(const struct window_axis *axis)
{
	int64_t end = (axis->in - 1) * axis->stride + axis->kernel - axis->before;
	return end < axis->out ? end : axis->out;
}

/* Outputs first, first + stride, … meet taps `tap`, tap + stride, … (n of them); the lowest of these comes from
 * input (first + before) / stride for the first output, the next ones from the inputs before it. */
static struct phase_axis axis_phase(const struct window_axis *axis, int64_t first)
{
	int64_t stride = axis->stride, tap = (first + axis->before) % stride;
	int64_t n = tap < axis->kernel ? (axis->kernel - tap + stride - 1) / stride : 0;
	return (struct phase_axis){
		.window = {.in = axis->in,
			   .out = (scattered(axis) - first + stride - 1) / stride,
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

/* The first of the phases of an axis from `first` on that meets a tap; -1: none. */
static int64_t find_meeting(const struct window_axis *axis, int64_t first)
{
	int64_t tap = (first + axis->before) % axis->stride;
	if (tap >= axis->kernel)
		first += axis->stride - tap;
	return first < axis->stride && first < scattered(axis) ? first : -1;
}

/* The next phase with taps after (*y, *x), row by row, from (find_meeting(h, 0), -1); false after the last. */
static bool next_phase(const struct window *window, int64_t *y, int64_t *x)
{
	*x = find_meeting(&window->w, *x + 1);
	if (*x < 0) {
		*y = find_meeting(&window->h, *y + 1);
		*x = find_meeting(&window->w, 0);
	}
	return *y >= 0 && *x >= 0;
}

/* Of n outputs from the one on whose first tap is 0. */
static int64_t count_first_meeting(const struct window_axis *axis, int64_t n)
{
	int64_t rest = n % axis->stride;
	int64_t whole = axis->kernel < axis->stride ? axis->kernel : axis->stride;
	return n / axis->stride * whole + (rest < axis->kernel ? rest : axis->kernel);
}

/* Outputs of an axis that meet a tap. */
static int64_t count_meeting(const struct window_axis *axis)
{
	int64_t end = scattered(axis);
	return end <= 0 ? 0
			: count_first_meeting(axis, axis->before + end) - count_first_meeting(axis, axis->before);
}

/* All outputs, as if none met a tap. */
static struct phase_axis axis_untouched(const struct window_axis *axis)
{
	return (struct phase_axis){
		.window = {.in = axis->in, .out = axis->out, .stride = 1, .dilation = 1},
		.kernel = axis->kernel,
		.out = axis->out,
		.out_step = 1,
	};
}

/* First outputs of phases among which there is every number of taps and of outputs that a phase of this axis has:
 * the first one, and those at which a number changes; how many. */
enum { CHANGES = 4 };
static unsigned find_changes(const struct window_axis *axis, int64_t *firsts)
{
	int64_t stride = axis->stride, tap_0 = (stride - axis->before % stride) % stride;
	const int64_t end = scattered(axis),
		      at[CHANGES] = {0, end % stride, tap_0, (tap_0 + axis->kernel % stride) % stride};
	unsigned n = 0;
	for (unsigned i = 0; i < CHANGES; i++)
		if (at[i] < end)
			firsts[n++] = at[i];
	return n;
}

/* What is asked of all phases is asked of their kinds, of which there are few: of phases there are as many as a
 * client says, and this is asked on the thread that answers all of them. */
struct kinds {
	struct window window;
	struct convolution convolution;
	struct phase phases[CHANGES * CHANGES + 1];
	unsigned n;
	/* Where some outputs meet no tap, all are written first, in whole planes: phases of one output in stride^2
	 * each cost more than what they write. */
	struct phase untouched;
	int64_t n_untouched; /* of the outputs of a feature */
};

static bool has_taps(const struct phase *phase)
{
	return phase->h.window.kernel * phase->w.window.kernel > 0;
}

static void kinds_init(struct kinds *kinds, const struct kernel_call *call)
{
	int64_t ys[CHANGES], xs[CHANGES];
	read_window(call, &kinds->window, NULL);
	convolution_init(&kinds->convolution, call, groups(call));
	unsigned n_ys = find_changes(&kinds->window.h, ys), n_xs = find_changes(&kinds->window.w, xs);
	kinds->n = n_ys * n_xs;
	kinds->untouched = (struct phase){axis_untouched(&kinds->window.h), axis_untouched(&kinds->window.w)};
	kinds->n_untouched = kinds->window.h.out * kinds->window.w.out -
			     count_meeting(&kinds->window.h) * count_meeting(&kinds->window.w);
	kinds->convolution.by_engine = true;
	for (unsigned i = 0; i < kinds->n; i++) {
		struct phase *phase = &kinds->phases[i];
		*phase = (struct phase){axis_phase(&kinds->window.h, ys[i / n_xs]),
					axis_phase(&kinds->window.w, xs[i % n_xs])};
		if (has_taps(phase) && !conv_fits(&kinds->convolution, phase))
			kinds->convolution.by_engine = false;
	}
	if (kinds->n_untouched)
		kinds->phases[kinds->n++] = kinds->untouched;
}

static size_t most_of(const struct kernel_call *call,
		      size_t (*bytes)(const struct convolution *convolution, const struct phase *phase))
{
	struct kinds kinds;
	size_t most = 0;
	kinds_init(&kinds, call);
	for (unsigned i = 0; i < kinds.n; i++) {
		size_t some = bytes(&kinds.convolution, &kinds.phases[i]);
		most = some > most ? some : most;
	}
	return most;
}

static size_t scratch_bytes(const struct kernel_call *call)
{
	return most_of(call, convolution_scratch_bytes);
}

/* For as many phases as can have taps. */
static size_t pack_bytes(const struct kernel_call *call)
{
	struct window window;
	read_window(call, &window, NULL);
	int64_t h = window.h.stride < window.h.kernel ? window.h.stride : window.h.kernel;
	int64_t w = window.w.stride < window.w.kernel ? window.w.stride : window.w.kernel;
	return most_of(call, convolution_pack_bytes) * (size_t)(h * w);
}

/* What is planned for each phase, in element steps. */
enum { PHASE = 8000 };

/* One after the other; each phase's pack is behind that of the one before. */
static bool pack(const struct kernel_call *call, void *to)
{
	struct kinds kinds;
	uint8_t *at = to;
	kinds_init(&kinds, call);
	int64_t y = find_meeting(&kinds.window.h, 0), x = -1, pending = 0;
	while (next_phase(&kinds.window, &y, &x)) {
		struct phase phase = {axis_phase(&kinds.window.h, y), axis_phase(&kinds.window.w, x)};
		if (!convolution_pack(&kinds.convolution, &phase, at) || !kernel_look(call, PHASE, &pending))
			return false;
		at += convolution_pack_bytes(&kinds.convolution, &phase);
	}
	return true;
}

/* All outputs of a channel are equal: the counts of those that no other phase writes are a part of what was
 * counted. */
static bool run_untouched(struct kinds *kinds)
{
	struct kernel_counts *counts = kinds->convolution.counts;
	int64_t n = kinds->window.h.out * kinds->window.w.out;
	if (!kinds->n_untouched)
		return true;
	if (!convolution_run(&kinds->convolution, &kinds->untouched))
		return false;
	counts->saturated = counts->saturated / n * kinds->n_untouched;
	counts->wrapped = counts->wrapped / n * kinds->n_untouched;
	return true;
}

static void run(struct kernel_call *call)
{
	struct kinds kinds;
	const uint8_t *at = call->pack;
	kinds_init(&kinds, call);
	int64_t y = find_meeting(&kinds.window.h, 0), x = -1;
	call->counts = (struct kernel_counts){.macs = 0};
	kinds.convolution.counts = &call->counts;
	if (!run_untouched(&kinds))
		return;
	while (next_phase(&kinds.window, &y, &x)) {
		struct phase phase = {axis_phase(&kinds.window.h, y), axis_phase(&kinds.window.w, x)};
		kinds.convolution.pack = at;
		if (!convolution_run(&kinds.convolution, &phase))
			return;
		size_t bytes = convolution_pack_bytes(&kinds.convolution, &phase);
		at = bytes ? at + bytes : at;
	}
}

static int64_t steps(const struct kernel_call *call)
{
	struct kinds kinds;
	double most = 0;
	kinds_init(&kinds, call);
	const struct window_axis *h = &kinds.window.h, *w = &kinds.window.w;
	double phases = (double)(h->stride < h->kernel ? h->stride : h->kernel) *
			(double)(w->stride < w->kernel ? w->stride : w->kernel);
	double untouched = kinds.n_untouched ? (double)operands_elements(operands_get(call, CONVOLUTION_OUT)) : 0;
	for (unsigned i = 0; i < kinds.n; i++) {
		double some = (double)convolution_steps(&kinds.convolution, &kinds.phases[i]);
		most = some > most ? some : most;
	}
	return steps_whole(phases * (most + PHASE) + untouched);
}

const struct kernel kernel_transpose_conv2d = {
	.number = NPUMEM_KERNEL_TRANSPOSE_CONV2D,
	.by_feature = 1 << CONVOLUTION_IN | 1 << CONVOLUTION_OUT,
	.check = check,
	.scratch_bytes = scratch_bytes,
	.pack_bytes = pack_bytes,
	.pack = pack,
	.packed = CONVOLUTION_WEIGHTS,
	.steps = steps,
	.run = run,
};
