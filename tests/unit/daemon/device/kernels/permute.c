/* permute: every permutation of four and of three dimensions, for every width of element, and its refusals. */
#include "tests/unit/daemon/device/kernels/calls.h"
#include "tests/unit/daemon/device/kernels/progress.h"

enum { IN, OUT };

static void check_against_loops(struct calls *c, const int64_t s[4], const int64_t from[4])
{
	calls_run(c);
	int64_t i[4], at = 0;
	for (i[0] = 0; i[0] < s[from[0]]; i[0]++)
		for (i[1] = 0; i[1] < s[from[1]]; i[1]++)
			for (i[2] = 0; i[2] < s[from[2]]; i[2]++)
				for (i[3] = 0; i[3] < s[from[3]]; i[3]++, at++) {
					int64_t x[4];
					for (int d = 0; d < 4; d++)
						x[from[d]] = i[d];
					int64_t source = ((x[0] * s[1] + x[1]) * s[2] + x[2]) * s[3] + x[3];
					ck_assert_int_eq(calls_get(c, OUT, at), calls_get(c, IN, source));
				}
	ck_assert_int_eq(c->call.counts.saturated, 0);
}

static void check_permutations(const int64_t s[4])
{
	static const int dtypes[] = {NPUMEM_FX8,   NPUMEM_FX16,	  NPUMEM_UINT8,
				     NPUMEM_INT16, NPUMEM_UINT32, NPUMEM_FP32};
	uint64_t state = 731;
	for (int p = 0; p < 256; p++) {
		const int64_t from[4] = {p / 64, p / 16 % 4, p / 4 % 4, p % 4};
		struct calls c;
		int dtype = dtypes[p % 6];
		calls_init(&c, NPUMEM_KERNEL_PERMUTE);
		calls_add(&c, "in", dtype, npumem_dtype_is_fixed(dtype) ? 5 : 0, s[0], s[1], s[2], s[3]);
		calls_add(&c, "out", dtype, npumem_dtype_is_fixed(dtype) ? 5 : 0, s[from[0]], s[from[1]],
			  s[from[2]], s[from[3]]);
		calls_param(&c, NPUMEM_PARAM_PERM, 4, from[0], from[1], from[2], from[3]);
		for (int64_t i = 0; i < s[0] * s[1] * s[2] * s[3]; i++)
			calls_put(&c, IN, i, (int64_t)oracle_random(&state));
		if ((1 << from[0] | 1 << from[1] | 1 << from[2] | 1 << from[3]) != 15)
			calls_refused(&c, "permute: perm names a dimension twice");
		else
			check_against_loops(&c, s, from);
		if (from[0] == 0 && from[1] > 0 && from[2] > 0 && from[3] > 0) { /* of C,H,W alone */
			calls_param(&c, NPUMEM_PARAM_PERM, 3, from[1] - 1, from[2] - 1, from[3] - 1, 99);
			if ((1 << from[1] | 1 << from[2] | 1 << from[3]) != 14)
				calls_refused(&c, "permute: perm names a dimension twice");
			else
				check_against_loops(&c, s, from);
		}
		calls_free(&c);
	}
}

/* Features that are gathered, and such as lie on lanes, where channels come round to the first NPU. */
START_TEST(every_permutation)
{
	static const int64_t shapes[][4] = {{2, 3, 5, 4}, {5, 7, 8, 9}};
	check_permutations(shapes[0]);
	check_permutations(shapes[1]);
}
END_TEST

START_TEST(progress)
{
	struct calls c;
	calls_init(&c, NPUMEM_KERNEL_PERMUTE);
	calls_add(&c, "in", NPUMEM_FX8, 7, 2, 3, 4, 5);
	calls_add(&c, "out", NPUMEM_FX8, 7, 2, 5, 3, 4);
	calls_param(&c, NPUMEM_PARAM_PERM, 4, 0, 3, 1, 2);
	progress_check(&c, OUT, 12);
	calls_free(&c);
}
END_TEST

START_TEST(refusals)
{
	struct calls c;
	calls_init(&c, NPUMEM_KERNEL_PERMUTE);
	calls_add(&c, "in", NPUMEM_FX8, 7, 2, 3, 4, 5);
	calls_add(&c, "out", NPUMEM_FX8, 7, 2, 5, 3, 4);
	struct kernel_operand *out = &c.operands[OUT][0];
	calls_param(&c, NPUMEM_PARAM_PERM, 4, 0, 3, 1, 2);
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
	ck_assert(!c.kernel->in_place);
	calls_param(&c, NPUMEM_PARAM_PERM, 4, 0, 4, 1, 2);
	calls_refused(&c, "permute: perm is 4, but must be 0 to 3");
	calls_param(&c, NPUMEM_PARAM_PERM, 4, INT64_MIN, 3, 1, 2);
	calls_refused(&c, "permute: perm is -9223372036854775808, but must be 0 to 3");
	calls_param(&c, NPUMEM_PARAM_PERM, 4, 0, 3, 1, INT64_MAX);
	calls_refused(&c, "permute: perm is 9223372036854775807, but must be 0 to 3");
	calls_param(&c, NPUMEM_PARAM_PERM, 3, 3, 0, 1, 0);
	calls_refused(&c, "permute: perm is 3, but must be 0 to 2");
	calls_param(&c, NPUMEM_PARAM_PERM, 3, 2, 0, 1, 0);
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
	out->dtype = NPUMEM_INT8;
	calls_refused(&c, "permute: out is int8, but must be fx8 as in is");
	out->dtype = NPUMEM_FX8;
	out->frac_bits = 8;
	calls_refused(&c, "permute: out has 8 frac_bits, but must have the 7 of in");
	out->frac_bits = 7;
	out->shape = (struct npumem_dims){2, 5, 4, 3};
	calls_refused(&c, "permute: out has H 4, but in and perm give 3");
	calls_free(&c);
}
END_TEST

Suite *suite_permute(void)
{
	Suite *suite = suite_create("device/kernels/permute");
	TCase *tcase = tcase_create("permute");
	tcase_add_test(tcase, every_permutation);
	tcase_add_test(tcase, progress);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
