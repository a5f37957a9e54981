/* Transposed 2D convolution: every input is multiplied by the whole kernel and added where it comes to lie;
 * padding crops. Outputs that lie a stride apart meet the same taps, in falling order for rising inputs: they are
 * an ordinary convolution by those taps, reversed. */
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/steps.h"
#include "daemon/device/kernel_support/windows/convolution_run.h"
#include "daemon/device/least.h"

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

static bool has_taps(const struct phase *phase)
{
	return phase->h.window.kernel * phase->w.window.kernel > 0;
}

/* call->plan */
struct transposed {
	struct window window;
	struct convolution convolution;
	bool by_engine; /* all phases that have taps; else none */
	/* Where some outputs meet no tap, all are written first, in whole planes: phases of one output in stride^2
	 * each cost more than what they write. */
	struct phase untouched;
	int64_t n_untouched; /* of the outputs of a feature */
	size_t scratch_bytes, pack_bytes;
	double steps; /* of a phase that has taps, at most */
	double untouched_steps;
};
_Static_assert(sizeof(struct transposed) <= KERNEL_PLAN_BYTES, "a plan fits where it is made");

static double larger(double a, double b)
{
	return a > b ? a : b;
}

/* What all phases need is asked of their kinds, of which there are few: of phases there are as many as a client
 * says, and this is asked on the thread that answers all of them. */
static void plan(struct kernel_call *call)
{
	struct transposed *t = call->plan;
	struct convolution_phase kinds[CHANGES * CHANGES + 1];
	int64_t ys[CHANGES], xs[CHANGES];
	read_window(call, &t->window, NULL);
	convolution_init(&t->convolution, call, groups(call));
	t->untouched = (struct phase){axis_untouched(&t->window.h), axis_untouched(&t->window.w)};
	t->n_untouched =
		t->window.h.out * t->window.w.out - count_meeting(&t->window.h) * count_meeting(&t->window.w);
	t->by_engine = true;
	t->scratch_bytes = t->pack_bytes = 0;
	t->steps = t->untouched_steps = 0;
	unsigned n_ys = find_changes(&t->window.h, ys), n_xs = find_changes(&t->window.w, xs), n = n_ys * n_xs;
	for (unsigned i = 0; i < n; i++) {
		const struct phase phase = {axis_phase(&t->window.h, ys[i / n_xs]),
					    axis_phase(&t->window.w, xs[i % n_xs])};
		convolution_plan(&kinds[i], &t->convolution, &phase);
		t->by_engine &= kinds[i].by_engine || !has_taps(&phase);
	}
	if (t->n_untouched)
		convolution_plan(&kinds[n++], &t->convolution, &t->untouched);
	for (unsigned i = 0; i < n; i++) {
		kinds[i].by_engine &= t->by_engine;
		size_t scratch = convolution_scratch_bytes(&kinds[i]), pack = convolution_pack_bytes(&kinds[i]);
		t->scratch_bytes = scratch > t->scratch_bytes ? scratch : t->scratch_bytes;
		t->pack_bytes = pack > t->pack_bytes ? pack : t->pack_bytes;
		double *steps = t->n_untouched && i + 1 == n ? &t->untouched_steps : &t->steps;
		*steps = larger(*steps, (double)convolution_steps(&kinds[i]));
	}
}

static size_t scratch_bytes(const struct kernel_call *call)
{
	return ((const struct transposed *)call->plan)->scratch_bytes;
}

/* As many phases as can have taps, of an axis and of both. */
static int64_t axis_phases_most(const struct window_axis *axis)
{
	int64_t most = least(axis->stride, axis->kernel), end = scattered(axis);
	return least(most, end > 0 ? end : 0);
}

static int64_t phases_most(const struct transposed *t)
{
	return axis_phases_most(&t->window.h) * axis_phases_most(&t->window.w);
}

static size_t pack_bytes(const struct kernel_call *call)
{
	const struct transposed *t = call->plan;
	return t->pack_bytes * (size_t)phases_most(t);
}

/* What is planned for each phase, in element steps. */
enum { PHASE = 8000 };

static int64_t steps(const struct kernel_call *call)
{
	const struct transposed *t = call->plan;
	return steps_whole((double)phases_most(t) * (t->steps + PHASE) + t->untouched_steps);
}

static void plan_phase(struct transposed *t, const struct phase *phase, struct convolution_phase *planned)
{
	convolution_plan(planned, &t->convolution, phase);
	planned->by_engine &= t->by_engine;
}

/* One after the other; each phase's pack is behind that of the one before. */
static bool pack(const struct kernel_call *call, void *to)
{
	struct transposed *t = call->plan;
	uint8_t *at = to;
	int64_t y = find_meeting(&t->window.h, 0), x = -1, pending = 0;
	convolution_load(&t->convolution);
	while (next_phase(&t->window, &y, &x)) {
		const struct phase phase = {axis_phase(&t->window.h, y), axis_phase(&t->window.w, x)};
		struct convolution_phase planned;
		plan_phase(t, &phase, &planned);
		if (!convolution_pack(&planned, at) || !kernel_look(call, PHASE, &pending))
			return false;
		at += convolution_pack_bytes(&planned);
	}
	return true;
}

/* All outputs of a channel are equal: the counts of those that no other phase writes are a part of what was
 * counted. */
static bool run_untouched(struct transposed *t)
{
	struct kernel_counts *counts = t->convolution.counts;
	struct convolution_phase planned;
	int64_t n = t->window.h.out * t->window.w.out;
	if (!t->n_untouched)
		return true;
	plan_phase(t, &t->untouched, &planned);
	if (!convolution_run(&planned))
		return false;
	counts->saturated = counts->saturated / n * t->n_untouched;
	counts->wrapped = counts->wrapped / n * t->n_untouched;
	return true;
}

static void run(struct kernel_call *call)
{
	struct transposed *t = call->plan;
	const uint8_t *at = call->pack;
	int64_t y = find_meeting(&t->window.h, 0), x = -1;
	call->counts = (struct kernel_counts){.macs = 0};
	convolution_load(&t->convolution);
	t->convolution.counts = &call->counts;
	if (!run_untouched(t))
		return;
	while (next_phase(&t->window, &y, &x)) {
		const struct phase phase = {axis_phase(&t->window.h, y), axis_phase(&t->window.w, x)};
		struct convolution_phase planned;
		plan_phase(t, &phase, &planned);
		t->convolution.pack = at;
		if (!convolution_run(&planned))
			return;
		size_t bytes = convolution_pack_bytes(&planned);
		at = bytes ? at + bytes : at;
	}
}

const struct kernel kernel_transpose_conv2d = {
	.number = NPUMEM_KERNEL_TRANSPOSE_CONV2D,
	.by_feature = 1 << CONVOLUTION_IN | 1 << CONVOLUTION_OUT,
	.check = check,
	.plan = plan,
	.scratch_bytes = scratch_bytes,
	.pack_bytes = pack_bytes,
	.pack = pack,
	.packed = 1 << CONVOLUTION_WEIGHTS,
	.pack_steps = CONVOLUTION_PACK_STEPS,
	.steps = steps,
	.run = run,
};
