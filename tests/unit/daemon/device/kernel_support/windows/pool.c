/* Pools over features of every width under every instruction set, ordinary windows and others: each must do what
 * it does by scalars. What that is the kernels' own tests say. */
#include "tests/unit/daemon/device/kernels/calls.h"

enum { IN, OUT };
enum { WIDTH_MAX = 70 };

static void check_width(int kernel, int64_t w, uint64_t *state)
{
	int64_t kernel_w = oracle_between(state, 1, w < 7 ? w : 7), stride = oracle_between(state, 1, 3);
	int64_t left = oracle_between(state, 0, kernel_w - 1), right = oracle_between(state, 0, kernel_w - 1);
	int64_t h = 5 + w % 3, kernel_h = oracle_between(state, 1, 3),
		top = oracle_between(state, 0, kernel_h - 1);
	int64_t far = (w - 1) / (kernel_w > 1 ? kernel_w - 1 : w);
	int64_t dilation = oracle_between(state, 1, far < 1 ? 1 : far < 3 ? far : 3), reach;
	int dtype = oracle_random(state) % 2 ? NPUMEM_FX8 : NPUMEM_FX16;
	struct calls c;
	if (w % 9 == 0) { /* all of it */
		kernel_w = w;
		left = right = 0;
		dilation = 1;
	}
	reach = (kernel_w - 1) * dilation + 1;
	calls_init(&c, kernel);
	calls_add(&c, "in", dtype, 9, 2, 4, h, w);
	calls_add(&c, "out", dtype, oracle_between(state, 7, 10), 2, 4, (h + top - kernel_h) / stride + 1,
		  (w + left + right - reach) / stride + 1);
	calls_param(&c, NPUMEM_PARAM_KERNEL, 2, kernel_h, kernel_w, 0, 0);
	calls_param(&c, NPUMEM_PARAM_STRIDE, 2, stride, stride, 0, 0);
	calls_param(&c, NPUMEM_PARAM_PADDING, 4, top, 0, left, right);
	calls_param(&c, NPUMEM_PARAM_DILATION, 2, 1, dilation, 0, 0);
	if (kernel == NPUMEM_KERNEL_AVEPOOL)
		calls_param(&c, NPUMEM_PARAM_COUNT_PADDING, 4, oracle_between(state, 0, top), 0,
			    oracle_between(state, 0, left), oracle_between(state, 0, right));
	c.call.rounding = (enum npumem_rounding)oracle_between(state, 1, 3);
	calls_sample(&c, IN, state);
	calls_run(&c);
	calls_free(&c);
}

TEST(every_width)
{
	uint64_t state = 13;
	for (int round = 0; round < 6; round++)
		for (int64_t w = 1; w <= WIDTH_MAX; w++) {
			check_width(NPUMEM_KERNEL_MAXPOOL, w, &state);
			check_width(NPUMEM_KERNEL_AVEPOOL, w, &state);
		}
}
