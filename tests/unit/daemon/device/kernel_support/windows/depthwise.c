/* Depthwise convolutions over features of every width under every instruction set, with windows for each of the
 * ways there are: each must do what it does by scalars. What that is the kernel's own tests say. */
#include "tests/unit/daemon/device/kernels/calls.h"

enum { IN, WEIGHTS, BIAS, OUT };
enum { WIDTH_MAX = 70, NARROW = 16 }; /* several rows of a narrow feature are a vector */

struct axis {
	int64_t in, kernel, stride, dilation, before, after, out;
};

static struct axis some_axis(int64_t in, uint64_t *state)
{
	struct axis axis = {
		.in = in, .stride = oracle_between(state, 1, 3), .dilation = oracle_between(state, 1, 2)};
	axis.kernel = oracle_between(state, 1, 7);
	if (oracle_random(state) % 2)
		axis = (struct axis){.in = in, .kernel = 3, .stride = 1, .dilation = 1};
	int64_t reach = (axis.kernel - 1) * axis.dilation + 1;
	axis.before = oracle_between(state, 0, reach - 1);
	axis.after = oracle_between(state, 0, reach - 1);
	if (in + axis.before + axis.after < reach)
		axis.after = axis.before = reach - 1;
	axis.out = (in + axis.before + axis.after - reach) / axis.stride + 1;
	return axis;
}

/* Any elements, or almost all of them the lowest. */
static void sample(struct calls *c, unsigned role, bool low, uint64_t *state)
{
	struct kernel_operand *operand = &c->operands[role][0];
	int64_t least, most, n = (int64_t)(calls_bytes(operand) / npumem_dtype_bytes(operand->dtype));
	calls_sample(c, role, state);
	npumem_dtype_range(operand->dtype, &least, &most);
	for (int64_t i = 0; i < n && low; i++)
		if (oracle_random(state) % 8)
			calls_put(c, role, i, least);
}

static void check_width(int64_t w, uint64_t *state)
{
	int64_t height = w <= NARROW ? oracle_between(state, 4, 4 + 5 * NARROW) : 4 + w % 4;
	struct axis x = some_axis(w, state), y = some_axis(height, state);
	const struct calls_types types = calls_fxn[oracle_random(state) % 3];
	int64_t times = 1 + (int64_t)(oracle_random(state) % 2);
	bool low = oracle_random(state) % 3 == 0;
	struct calls c;
	calls_init(&c, NPUMEM_KERNEL_DEPTHWISE_CONV2D);
	calls_add(&c, "in", types.data, 7, 2, 3, y.in, x.in);
	calls_add(&c, "weights", types.weights, 7, 1, 3 * times, y.kernel, x.kernel);
	calls_add(&c, "bias", types.weights, oracle_between(state, 5, 14), 1, 3 * times, 1, 1);
	calls_add(&c, "out", types.data, oracle_between(state, 2, 9), 2, 3 * times, y.out, x.out);
	calls_param(&c, NPUMEM_PARAM_STRIDE, 2, y.stride, x.stride, 0, 0);
	calls_param(&c, NPUMEM_PARAM_DILATION, 2, y.dilation, x.dilation, 0, 0);
	calls_param(&c, NPUMEM_PARAM_PADDING, 4, y.before, y.after, x.before, x.after);
	calls_param(&c, NPUMEM_PARAM_RELU, 1, oracle_between(state, 1, 4), 0, 0, 0);
	c.call.rounding = (enum npumem_rounding)oracle_between(state, 1, 3);
	sample(&c, IN, low, state);
	sample(&c, WEIGHTS, low, state);
	sample(&c, BIAS, low, state);
	calls_run(&c);
	calls_free(&c);
}

TEST(every_width)
{
	uint64_t state = 17;
	for (int round = 0; round < 12; round++)
		for (int64_t w = 1; w <= WIDTH_MAX; w++)
			check_width(w, &state);
}
