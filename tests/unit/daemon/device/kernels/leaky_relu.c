/* leaky_relu: every value of the containers against the oracle, and its refusals. */
#include "tests/unit/daemon/device/kernels/calls.h"

enum { IN, SLOPE, OUT };

static void check_all_values(int dtype, int64_t slope, int64_t slope_frac_bits, int mode)
{
	struct calls c;
	int64_t low, high, saturated = 0;
	npumem_dtype_range(dtype, &low, &high);
	calls_init(&c, NPUMEM_KERNEL_LEAKY_RELU);
	calls_add(&c, "in", dtype, 12, 2, 2, (high - low + 1) / 4, 1);
	calls_add(&c, "slope", dtype, slope_frac_bits, 1, 1, 1, 1);
	calls_add(&c, "out", dtype, 12, 2, 2, (high - low + 1) / 4, 1);
	c.call.rounding = (enum npumem_rounding)mode;
	calls_put(&c, SLOPE, 0, slope);
	for (int64_t x = low; x <= high; x++)
		calls_put(&c, IN, x - low, x);
	calls_run(&c);
	for (int64_t x = low; x <= high; x++) {
		int64_t want =
			x < 0 ? oracle_result(oracle_of(x * slope), slope_frac_bits, mode, low, high, &saturated)
			      : x;
		if (calls_get(&c, OUT, x - low) != want)
			ck_abort_msg("%lld with slope %lld Q.%lld is %lld, not %lld", (long long)x,
				     (long long)slope, (long long)slope_frac_bits,
				     (long long)calls_get(&c, OUT, x - low), (long long)want);
	}
	ck_assert_int_eq(c.call.counts.saturated, saturated);
	ck_assert_int_eq(c.call.counts.macs, 0);
	calls_free(&c);
}

/* Slopes below and above one, negative, zero, and in formats that leave nothing of them. */
START_TEST(every_value)
{
	static const int64_t slopes[][2] = {{13, 7}, {127, 7}, {-128, 7}, {-1, 0},
					    {0, 0},  {100, 3}, {-5, 1},	  {127, 127}};
	for (unsigned s = 0; s < sizeof(slopes) / sizeof(slopes[0]); s++)
		for (int mode = 1; mode <= 3; mode++)
			check_all_values(NPUMEM_FX8, slopes[s][0], slopes[s][1], mode);
	check_all_values(NPUMEM_FX16, 3277, 15, NPUMEM_CONVERGENT);
	check_all_values(NPUMEM_FX16, INT16_MIN, 15, NPUMEM_UP);
	check_all_values(NPUMEM_FX16, INT16_MIN, 0, NPUMEM_NEAREST);
}
END_TEST

START_TEST(refusals)
{
	static const struct calls_break breaks[] = {
		{"in", 't', NPUMEM_INT8, .text = "leaky_relu: in is int8, but must be fx8 or fx16"},
		{"in", 'f', 3, .text = "leaky_relu: out has 4 frac_bits, but must have the 3 of in"},
		{"slope", 't', NPUMEM_FX16, .text = "leaky_relu: slope is fx16, but must be fx8 as in is"},
		{"slope", 'c', 2, .text = "leaky_relu: slope has C 2, but must have 1"},
		{"out", 't', NPUMEM_FX16, .text = "leaky_relu: out is fx16, but must be fx8 as in is"},
		{"out", 'f', 5, .text = "leaky_relu: out has 5 frac_bits, but must have the 4 of in"},
		{"out", 'w', 301, .text = "leaky_relu: out has W 301, but in has 300"},
	};
	struct calls c;
	calls_init(&c, NPUMEM_KERNEL_LEAKY_RELU);
	calls_add(&c, "in", NPUMEM_FX8, 4, 2, 2, 3, 300);
	calls_add(&c, "slope", NPUMEM_FX8, 100, 1, 1, 1, 1);
	calls_add(&c, "out", NPUMEM_FX8, 4, 2, 2, 3, 300);
	ck_assert(c.kernel->in_place);
	calls_breaks(&c, breaks, sizeof(breaks) / sizeof(breaks[0]));
	calls_break_all(&c);
	calls_progress(&c);
	calls_free(&c);
}
END_TEST

Suite *suite_leaky_relu(void)
{
	Suite *suite = suite_create("device/kernels/leaky_relu");
	TCase *tcase = tcase_create("leaky_relu");
	tcase_add_test(tcase, every_value);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
