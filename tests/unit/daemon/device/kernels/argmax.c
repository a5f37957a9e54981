/* argmax by taking the best that is not taken yet, over values with many ties, for every type and axis. */
#include <stdio.h>

#include "tests/unit/daemon/device/kernels/calls.h"
#include "tests/unit/daemon/device/kernels/progress.h"

enum { IN, OUT };
enum { N, C, H, W, NONE = -1 };

static void set_up(struct calls *c, int dtype, const int64_t s[4], int axis, int64_t topk)
{
	calls_init(c, NPUMEM_KERNEL_ARGMAX);
	calls_add(c, "in", dtype, npumem_dtype_is_fixed(dtype) ? 9 : 0, s[N], s[C], s[H], s[W]);
	if (axis == NONE)
		calls_add(c, "out", NPUMEM_INT32, 0, 1, topk, 1, 1);
	else
		calls_add(c, "out", NPUMEM_INT32, 0, 1, s[axis], 1, topk);
	calls_param(c, NPUMEM_PARAM_AXIS, 1, axis + 2, 0, 0, 0);
	calls_param(c, NPUMEM_PARAM_TOPK, 1, topk, 0, 0, 0);
}

/* The index of element i along `axis`. */
static int64_t along(const int64_t s[4], int axis, int64_t i)
{
	if (axis == NONE)
		return 0;
	for (int d = W; d > axis; d--)
		i /= s[d];
	return i % s[axis];
}

static void check_against_loops(struct calls *c, const int64_t s[4], int axis, int64_t topk)
{
	int64_t n = s[N] * s[C] * s[H] * s[W], at = 0;
	bool *taken = calloc((size_t)n, sizeof(*taken));
	ck_assert_ptr_nonnull(taken);
	calls_run(c);
	for (int64_t a = 0; a < (axis == NONE ? 1 : s[axis]); a++)
		for (int64_t k = 0; k < topk; k++, at++) {
			int64_t best = -1;
			for (int64_t i = 0; i < n; i++)
				if (along(s, axis, i) == a && !taken[i] &&
				    (best < 0 || calls_get(c, IN, i) > calls_get(c, IN, best)))
					best = i;
			ck_assert_int_ge(best, 0);
			taken[best] = true;
			ck_assert_int_eq(calls_get(c, OUT, at), best);
		}
	free(taken);
	ck_assert_int_eq(c->call.counts.saturated, 0);
	ck_assert_int_eq(c->call.counts.wrapped, 0);
}

START_TEST(every_type_and_axis)
{
	static const int dtypes[] = {NPUMEM_FX16,  NPUMEM_FX8,	  NPUMEM_INT8,	NPUMEM_UINT8,
				     NPUMEM_INT16, NPUMEM_UINT16, NPUMEM_INT32, NPUMEM_UINT32};
	static const int64_t s[4] = {3, 4, 2, 5};
	uint64_t state = 721;
	for (unsigned t = 0; t < sizeof(dtypes) / sizeof(dtypes[0]); t++)
		for (int axis = NONE; axis <= W; axis++) {
			int64_t most = axis == NONE ? 120 : 120 / s[axis];
			const int64_t topks[] = {1, 2, 7, most};
			for (int k = 0; k < 4; k++) {
				struct calls c;
				set_up(&c, dtypes[t], s, axis, topks[k]);
				calls_sample(&c, IN, &state);
				check_against_loops(&c, s, axis, topks[k]);
				calls_free(&c);
			}
		}
}
END_TEST

START_TEST(ties_and_blocks)
{
	static const int64_t shapes[][4] = {
		{1, 2, 3, 300}, {300, 2, 1, 1}, {1, 1, 1, 1}, {2, 7, 6, 6}, {1, 2, 30, 70}};
	for (int s = 0; s < 5; s++)
		for (int axis = NONE; axis <= W; axis++) {
			struct calls c;
			set_up(&c, NPUMEM_FX8, shapes[s], axis, 1);
			for (int64_t i = 0; i < shapes[s][N] * shapes[s][C] * shapes[s][H] * shapes[s][W]; i++)
				calls_put(&c, IN, i, i % 7 == 3 ? 5 : -5);
			check_against_loops(&c, shapes[s], axis, 1);
			calls_free(&c);
		}
	/* Nothing given: the one best of the whole tensor. */
	struct calls c;
	set_up(&c, NPUMEM_FX8, shapes[0], NONE, 1);
	calls_param(&c, NPUMEM_PARAM_AXIS, 0, 0, 0, 0, 0);
	calls_param(&c, NPUMEM_PARAM_TOPK, 0, 0, 0, 0, 0);
	calls_put(&c, IN, 1700, 3);
	calls_put(&c, IN, 1701, 3);
	calls_run(&c);
	ck_assert_int_eq(calls_get(&c, OUT, 0), 1700);
	calls_free(&c);
}
END_TEST

START_TEST(progress)
{
	static const int64_t s[4] = {2, 3, 4, 5};
	struct calls c;
	set_up(&c, NPUMEM_FX16, s, C, 4);
	progress_check(&c, OUT, 2);
	calls_free(&c);
}
END_TEST

START_TEST(refusals)
{
	static const int64_t s[4] = {2, 3, 4, 5};
	struct calls c;
	set_up(&c, NPUMEM_FX16, s, C, 40);
	struct kernel_operand *in = &c.operands[IN][0], *out = &c.operands[OUT][0];
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
	ck_assert(!c.kernel->in_place);
	in->dtype = NPUMEM_FP32;
	calls_refused(&c, "argmax: in is fp32, but must be fixed point or an integer");
	in->dtype = NPUMEM_FX16;
	out->dtype = NPUMEM_UINT32;
	calls_refused(&c, "argmax: out is uint32, but must be int32");
	out->dtype = NPUMEM_INT32;
	static const int64_t topks[] = {0, -1, 41, INT64_MAX, INT64_MIN};
	for (unsigned i = 0; i < sizeof(topks) / sizeof(topks[0]); i++) {
		char text[96];
		snprintf(text, sizeof(text), "argmax: topk is %lld, but must be 1 to 40", (long long)topks[i]);
		calls_param(&c, NPUMEM_PARAM_TOPK, 1, topks[i], 0, 0, 0);
		calls_refused(&c, text);
	}
	calls_param(&c, NPUMEM_PARAM_TOPK, 1, 39, 0, 0, 0);
	calls_refused(&c, "argmax: out has W 40, but in, axis and topk give 39");
	calls_param(&c, NPUMEM_PARAM_TOPK, 1, 40, 0, 0, 0);
	out->shape.c = 4;
	calls_refused(&c, "argmax: out has C 4, but in, axis and topk give 3");
	calls_param(&c, NPUMEM_PARAM_AXIS, 1, 1, 0, 0, 0);
	calls_refused(&c, "argmax: out has C 4, but in, axis and topk give 40");
	calls_param(&c, NPUMEM_PARAM_AXIS, 1, 6, 0, 0, 0);
	calls_refused(&c, "argmax: axis is number 6, but its choices are 1 to 5: none n c h w");
	calls_param(&c, NPUMEM_PARAM_AXIS, 1, 3, 0, 0, 0);
	in->shape = (struct npumem_dims){2, 3, 1 << 15, 1 << 14}; /* 1.5 * 2^31 */
	calls_refused(&c, "argmax: in has 3221225472 elements, more than the 2147483648 that int32 counts");
	in->shape.c = 2; /* 2^31: the last index is the last int32 */
	calls_refused(&c, "argmax: out has C 4, but in, axis and topk give 2");
	calls_free(&c);
}
END_TEST

Suite *suite_argmax(void)
{
	Suite *suite = suite_create("device/kernels/argmax");
	TCase *tcase = tcase_create("argmax");
	tcase_add_test(tcase, every_type_and_axis);
	tcase_add_test(tcase, ties_and_blocks);
	tcase_add_test(tcase, progress);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
