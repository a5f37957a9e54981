/* convert_tensor: any type to any, against the oracle and the arithmetic chapter's figures; NaN by position. */
#include <math.h>

#include "tests/unit/daemon/device/kernels/calls.h"

enum { IN, OUT };

static const int dtypes[] = {NPUMEM_INT8,  NPUMEM_UINT8,  NPUMEM_INT16, NPUMEM_UINT16,
			     NPUMEM_INT32, NPUMEM_UINT32, NPUMEM_FX8,	NPUMEM_FX16};
enum { DTYPES = sizeof(dtypes) / sizeof(dtypes[0]) };

static void set_up(struct calls *c, int from, int64_t from_frac_bits, int to, int64_t to_frac_bits, int64_t w)
{
	calls_init(c, NPUMEM_KERNEL_CONVERT_TENSOR);
	calls_add(c, "in", from, from_frac_bits, 1, 1, 1, w);
	calls_add(c, "out", to, to_frac_bits, 1, 1, 1, w);
}

static int64_t sample_frac_bits(int dtype, uint64_t *state)
{
	return npumem_dtype_is_fixed(dtype) ? oracle_between(state, 0, oracle_random(state) % 2 ? 20 : 127) : 0;
}

START_TEST(worked_examples)
{
	static const struct {
		int from;
		int64_t x, from_frac_bits, to_frac_bits;
		enum npumem_rounding rounding;
		int64_t y;
	} rows[] = {
		{NPUMEM_FX8, 0x24, 8, 12, NPUMEM_UP, 0x240},
		{NPUMEM_FX8, 0x24, 4, 1, NPUMEM_UP, 5},
		{NPUMEM_FX8, 0x24, 4, 1, NPUMEM_CONVERGENT, 4},
		{NPUMEM_FX8, -0x24, 4, 1, NPUMEM_UP, -4},
		{NPUMEM_FX8, -0x24, 4, 1, NPUMEM_NEAREST, -5},
		{NPUMEM_FX16, 0x20, 10, 10, NPUMEM_UP, 0x20}, /* "can be stored in an 8 bit container" */
		{NPUMEM_FX16, 0x220, 10, 10, NPUMEM_UP, 0x220},
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct calls c;
		set_up(&c, rows[i].from, rows[i].from_frac_bits, NPUMEM_FX16, rows[i].to_frac_bits, 1);
		c.call.rounding = rows[i].rounding;
		calls_put(&c, IN, 0, rows[i].x);
		calls_run(&c);
		ck_assert_int_eq(calls_get(&c, OUT, 0), rows[i].y);
		ck_assert_int_eq(c.call.counts.saturated, 0);
		calls_free(&c);
	}
	/* 0x220 does not fit an 8-bit container in Q.10; 0x20 does. */
	struct calls c;
	set_up(&c, NPUMEM_FX16, 10, NPUMEM_FX8, 10, 2);
	calls_put(&c, IN, 0, 0x20);
	calls_put(&c, IN, 1, 0x220);
	calls_run(&c);
	ck_assert_int_eq(calls_get(&c, OUT, 0), 0x20);
	ck_assert_int_eq(calls_get(&c, OUT, 1), INT8_MAX);
	ck_assert_int_eq(c.call.counts.saturated, 1);
	calls_free(&c);
}
END_TEST

START_TEST(between_integers)
{
	uint64_t state = 41;
	for (int from = 0; from < DTYPES; from++)
		for (int to = 0; to < DTYPES; to++)
			for (int mode = 1; mode <= 3; mode++) {
				struct calls c;
				int64_t in = sample_frac_bits(dtypes[from], &state);
				int64_t out = sample_frac_bits(dtypes[to], &state);
				set_up(&c, dtypes[from], in, dtypes[to], out, mode == 1 ? 515 : 20);
				c.call.rounding = (enum npumem_rounding)mode;
				calls_sample(&c, IN, &state);
				calls_run(&c);
				int64_t low, high, saturated = 0;
				npumem_dtype_range(dtypes[to], &low, &high);
				for (int64_t i = 0; i < c.operands[IN][0].shape.w; i++) {
					int64_t want = oracle_result(oracle_of(calls_get(&c, IN, i)), in - out,
								     mode, low, high, &saturated);
					if (calls_get(&c, OUT, i) != want)
						ck_abort_msg("%s Q.%lld %lld to %s Q.%lld is %lld, not %lld",
							     npumem_dtype_name(dtypes[from]), (long long)in,
							     (long long)calls_get(&c, IN, i),
							     npumem_dtype_name(dtypes[to]), (long long)out,
							     (long long)calls_get(&c, OUT, i), (long long)want);
				}
				ck_assert_int_eq(c.call.counts.saturated, saturated);
				calls_free(&c);
			}
}
END_TEST

START_TEST(from_fp32)
{
	static const float reals[] = {0.85f,	-1.09f,	   0.5f,  -0.5f,   1.5f,
				      INFINITY, -INFINITY, 3e38f, -1e-45f, -0.0f};
	static const struct {
		int to;
		int64_t frac_bits;
		enum npumem_rounding rounding;
		int64_t y[10], saturated;
	} rows[] = {
		{NPUMEM_FX8, 7, NPUMEM_NEAREST, {109, -128, 64, -64, 127, 127, -128, 127, 0, 0}, 5},
		{NPUMEM_FX16, 10, NPUMEM_NEAREST, {870, -1116, 512, -512, 1536, 32767, -32768, 32767, 0, 0}, 3},
		{NPUMEM_INT8, 0, NPUMEM_CONVERGENT, {1, -1, 0, 0, 2, 127, -128, 127, 0, 0}, 3},
		{NPUMEM_INT8, 0, NPUMEM_UP, {1, -1, 1, 0, 2, 127, -128, 127, 0, 0}, 3},
		{NPUMEM_INT32, 0, NPUMEM_NEAREST, {1, -1, 1, -1, 2, INT32_MAX, INT32_MIN, INT32_MAX, 0, 0}, 3},
		{NPUMEM_UINT32, 0, NPUMEM_UP, {1, 0, 1, 0, 2, UINT32_MAX, 0, UINT32_MAX, 0, 0}, 4},
	};
	for (unsigned r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		struct calls c;
		set_up(&c, NPUMEM_FP32, 0, rows[r].to, rows[r].frac_bits, 10);
		c.call.rounding = rows[r].rounding;
		memcpy(c.operands[IN][0].data, reals, sizeof(reals));
		calls_run(&c);
		for (int64_t i = 0; i < 10; i++)
			ck_assert_int_eq(calls_get(&c, OUT, i), rows[r].y[i]);
		ck_assert_int_eq(c.call.counts.saturated, rows[r].saturated);
		calls_free(&c);
	}
}
END_TEST

START_TEST(to_fp32)
{
	struct calls c;
	set_up(&c, NPUMEM_FX16, 15, NPUMEM_FP32, 0, 3);
	calls_put(&c, IN, 0, 5448);
	calls_put(&c, IN, 1, -32768);
	calls_put(&c, IN, 2, 32767);
	calls_run(&c);
	const float *reals = c.operands[OUT][0].data;
	ck_assert(reals[0] == 0.166259765625f && reals[1] == -1.0f && reals[2] == 0.999969482421875f);
	ck_assert_int_eq(c.call.counts.saturated, 0);
	calls_free(&c);

	set_up(&c, NPUMEM_UINT32, 0, NPUMEM_FP32, 0, 2);
	calls_put(&c, IN, 0, UINT32_MAX);
	calls_put(&c, IN, 1, 16777217);
	calls_run(&c);
	reals = c.operands[OUT][0].data;
	ck_assert(reals[0] == 4294967296.0f && reals[1] == 16777216.0f);
	calls_free(&c);

	/* fp32 to fp32 keeps every bit. */
	set_up(&c, NPUMEM_FP32, 0, NPUMEM_FP32, 0, 4);
	const uint32_t bits[4] = {0x7f800000, 0x80000000, 0x00000001, 0xff7fffff};
	memcpy(c.operands[IN][0].data, bits, sizeof(bits));
	calls_run(&c);
	ck_assert_mem_eq(c.operands[OUT][0].data, bits, sizeof(bits));
	ck_assert_int_eq(c.call.counts.saturated, 0);
	calls_free(&c);
}
END_TEST

START_TEST(refusals)
{
	for (int to = NPUMEM_INT8; to <= NPUMEM_FX16; to++) {
		struct calls c;
		calls_init(&c, NPUMEM_KERNEL_CONVERT_TENSOR);
		float *reals = calls_add(&c, "in", NPUMEM_FP32, 0, 2, 3, 4, 5);
		calls_add(&c, "out", to, 0, 2, 3, 4, 5);
		for (unsigned i = 0; i < 2 * 3 * 4 * 5; i++)
			reals[i] = INFINITY;
		reals[((1 * 3 + 2) * 4 + 3) * 5 + 1] = -NAN;
		reals[2 * 3 * 4 * 5 - 1] = NAN; /* the first one is named */
		calls_refused(&c, "convert_tensor: in is NaN at [1,2,3,1]");
		ck_assert_int_eq(npumem_error_find(&c.error, "h", -1), 3);
		reals[((1 * 3 + 2) * 4 + 3) * 5 + 1] = 0;
		calls_refused(&c, "convert_tensor: in is NaN at [1,2,3,4]");
		c.operands[OUT][0].shape.h = 3;
		calls_refused(&c, "convert_tensor: out has H 3, but in has 4");
		calls_free(&c);
	}
}
END_TEST

START_TEST(every_extent)
{
	static const struct calls_break breaks[] = {
		{"in", 'n', 1, .text = "convert_tensor: out has N 2, but in has 1"},
		{"in", 'w', 6, .text = "convert_tensor: out has W 5, but in has 6"},
		{"out", 'n', 3, .text = "convert_tensor: out has N 3, but in has 2"},
		{"out", 'c', 4, .text = "convert_tensor: out has C 4, but in has 3"},
		{"out", 'h', 1, .text = "convert_tensor: out has H 1, but in has 4"},
		{"out", 'w', 4, .text = "convert_tensor: out has W 4, but in has 5"},
	};
	struct calls c;
	calls_init(&c, NPUMEM_KERNEL_CONVERT_TENSOR);
	calls_add(&c, "in", NPUMEM_UINT16, 0, 2, 3, 4, 5);
	calls_add(&c, "out", NPUMEM_FX8, 3, 2, 3, 4, 5);
	calls_breaks(&c, breaks, sizeof(breaks) / sizeof(breaks[0]));
	c.call.rounding = (enum npumem_rounding)4;
	calls_refused(&c, "convert_tensor: there is no rounding mode 4");
	calls_free(&c);
}
END_TEST

START_TEST(progress)
{
	static const int types[][2] = {
		{NPUMEM_FP32, NPUMEM_FX8}, {NPUMEM_FX16, NPUMEM_FP32}, {NPUMEM_FX16, NPUMEM_INT32}};
	for (unsigned t = 0; t < 3; t++) {
		struct calls c;
		calls_init(&c, NPUMEM_KERNEL_CONVERT_TENSOR);
		calls_add(&c, "in", types[t][0], 0, 2, 3, 4, 50);
		calls_add(&c, "out", types[t][1], 0, 2, 3, 4, 50);
		calls_progress(&c);
		calls_free(&c);
	}
}
END_TEST

Suite *suite_convert_tensor(void)
{
	Suite *suite = suite_create("device/kernels/convert_tensor");
	TCase *tcase = tcase_create("convert_tensor");
	tcase_add_test(tcase, worked_examples);
	tcase_add_test(tcase, between_integers);
	tcase_add_test(tcase, from_fp32);
	tcase_add_test(tcase, to_fp32);
	tcase_add_test(tcase, refusals);
	tcase_add_test(tcase, every_extent);
	tcase_add_test(tcase, progress);
	suite_add_tcase(suite, tcase);
	return suite;
}
