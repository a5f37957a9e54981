/* concat: one to five inputs along every axis, element by element, and its refusals. */
#include "tests/unit/daemon/device/kernels/calls.h"
#include "tests/unit/daemon/device/kernels/progress.h"

enum { IN, OUT };

/* Bytes `size` from element i of an operand. */
static const uint8_t *element(const struct kernel_operand *operand, const int64_t i[4])
{
	const struct npumem_dims *s = &operand->shape;
	int64_t at = ((i[0] * s->c + i[1]) * s->h + i[2]) * s->w + i[3];
	return (const uint8_t *)operand->data + at * npumem_dtype_bytes(operand->dtype);
}

static void check_against_loops(struct calls *c, int axis)
{
	calls_run(c);
	const struct kernel_operand *out = &c->operands[OUT][0];
	int64_t i[4];
	for (i[0] = 0; i[0] < out->shape.n; i[0]++)
		for (i[1] = 0; i[1] < out->shape.c; i[1]++)
			for (i[2] = 0; i[2] < out->shape.h; i[2]++)
				for (i[3] = 0; i[3] < out->shape.w; i[3]++) {
					int64_t x[4];
					unsigned member = 0;
					memcpy(x, i, sizeof(x));
					for (;; member++) {
						const struct npumem_dims *s = &c->operands[IN][member].shape;
						const int64_t extents[] = {s->n, s->c, s->h, s->w};
						if (x[axis] < extents[axis])
							break;
						x[axis] -= extents[axis];
					}
					ck_assert_mem_eq(element(out, i), element(&c->operands[IN][member], x),
							 npumem_dtype_bytes(out->dtype));
				}
	ck_assert_int_eq(c->call.counts.saturated, 0);
}

START_TEST(every_axis)
{
	static const int dtypes[] = {NPUMEM_FX8, NPUMEM_FX16, NPUMEM_FP32, NPUMEM_UINT8};
	uint64_t state = 741;
	for (int axis = 0; axis < 4; axis++)
		for (int inputs = 1; inputs <= 5; inputs++) {
			int dtype = dtypes[(axis + inputs) % 4];
			int64_t frac_bits = npumem_dtype_is_fixed(dtype) ? 100 : 0, sum = 0;
			struct calls c;
			calls_init(&c, NPUMEM_KERNEL_CONCAT);
			int64_t s[4] = {2, 3, 4, 50};
			for (int k = 0; k < inputs; k++) {
				s[axis] = oracle_between(&state, 1, 4);
				sum += s[axis];
				uint8_t *in = calls_add(&c, "in", dtype, frac_bits, s[0], s[1], s[2], s[3]);
				for (size_t b = 0; b < calls_bytes(&c.operands[IN][k]); b++)
					in[b] = (uint8_t)oracle_random(&state);
			}
			s[axis] = sum;
			calls_add(&c, "out", dtype, frac_bits, s[0], s[1], s[2], s[3]);
			calls_param(&c, NPUMEM_PARAM_AXIS, 1, axis + 2, 0, 0, 0);
			check_against_loops(&c, axis);
			calls_free(&c);
		}
}
END_TEST

START_TEST(progress)
{
	struct calls c;
	calls_init(&c, NPUMEM_KERNEL_CONCAT);
	calls_add(&c, "in", NPUMEM_FX8, 7, 2, 3, 4, 5);
	calls_add(&c, "in", NPUMEM_FX8, 7, 2, 1, 4, 5);
	calls_add(&c, "out", NPUMEM_FX8, 7, 2, 4, 4, 5);
	calls_param(&c, NPUMEM_PARAM_AXIS, 1, 3, 0, 0, 0);
	progress_check(&c, OUT, 60);
	calls_free(&c);
}
END_TEST

START_TEST(refusals)
{
	struct calls c;
	calls_init(&c, NPUMEM_KERNEL_CONCAT);
	calls_add(&c, "in", NPUMEM_FX8, 7, 2, 3, 4, 5);
	calls_add(&c, "in", NPUMEM_FX8, 7, 2, 1, 4, 5);
	calls_add(&c, "in", NPUMEM_FX8, 7, 2, 2, 4, 5);
	calls_add(&c, "out", NPUMEM_FX8, 7, 2, 6, 4, 5);
	struct kernel_operand *in = c.operands[IN], *out = c.operands[OUT];
	calls_refused(&c, "concat: axis must be one of n, c, h, w");
	calls_param(&c, NPUMEM_PARAM_AXIS, 1, 1, 0, 0, 0);
	calls_refused(&c, "concat: axis must be one of n, c, h, w");
	calls_param(&c, NPUMEM_PARAM_AXIS, 1, 0, 0, 0, 0);
	calls_refused(&c, "concat: axis is number 0, but its choices are 1 to 5");
	calls_param(&c, NPUMEM_PARAM_AXIS, 1, 3, 0, 0, 0);
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
	ck_assert(!c.kernel->in_place);
	in[2].dtype = NPUMEM_INT8;
	calls_refused(&c, "concat: in2 is int8, but must be fx8 as in0 is");
	in[2].dtype = NPUMEM_FX8;
	in[1].frac_bits = 6;
	calls_refused(&c, "concat: in1 has 6 frac_bits, but must have the 7 of in0");
	in[1].frac_bits = 7;
	in[2].shape.h = 3;
	calls_refused(&c, "concat: in2 has H 3, but in0 has 4");
	in[2].shape.h = 4;
	in[1].shape.n = 1;
	calls_refused(&c, "concat: in1 has N 1, but in0 has 2");
	in[1].shape.n = 2;
	out->dtype = NPUMEM_FX16;
	calls_refused(&c, "concat: out is fx16, but must be fx8 as in0 is");
	out->dtype = NPUMEM_FX8;
	out->frac_bits = 8;
	calls_refused(&c, "concat: out has 8 frac_bits, but must have the 7 of in0");
	out->frac_bits = 7;
	out->shape.c = 7;
	calls_refused(&c, "concat: out has C 7, but its inputs give 6");
	out->shape.c = 6;
	out->shape.w = 4;
	calls_refused(&c, "concat: out has W 4, but its inputs give 5");
	calls_free(&c);
}
END_TEST

Suite *suite_concat(void)
{
	Suite *suite = suite_create("device/kernels/concat");
	TCase *tcase = tcase_create("concat");
	tcase_add_test(tcase, every_axis);
	tcase_add_test(tcase, progress);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
