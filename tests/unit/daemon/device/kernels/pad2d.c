/* pad2d: paddings of zeros and of values on every side, for every type, and its refusals. */
#include "tests/unit/daemon/device/kernels/calls.h"
#include "tests/unit/daemon/device/kernels/progress.h"

enum { IN, OUT };
enum { TOP, BOTTOM, LEFT, RIGHT };

static void set_up(struct calls *c, int dtype, const int64_t sides[4], bool has_value, int64_t value)
{
	int64_t frac_bits = npumem_dtype_is_fixed(dtype) ? 33 : 0;
	calls_init(c, NPUMEM_KERNEL_PAD2D);
	calls_add(c, "in", dtype, frac_bits, 2, 3, 4, 5);
	calls_add(c, "out", dtype, frac_bits, 2, 3, 4 + sides[TOP] + sides[BOTTOM],
		  5 + sides[LEFT] + sides[RIGHT]);
	calls_param(c, NPUMEM_PARAM_PADDING, 4, sides[TOP], sides[BOTTOM], sides[LEFT], sides[RIGHT]);
	calls_param(c, NPUMEM_PARAM_VALUE, has_value, value, 0, 0, 0);
}

static void check_against_loops(struct calls *c, const int64_t sides[4], int64_t padding)
{
	calls_run(c);
	const struct npumem_dims *s = &c->operands[OUT][0].shape;
	int64_t at = 0;
	for (int64_t feature = 0; feature < 6; feature++)
		for (int64_t h = 0; h < s->h; h++)
			for (int64_t w = 0; w < s->w; w++, at++) {
				int64_t y = h - sides[TOP], x = w - sides[LEFT];
				bool inside = y >= 0 && y < 4 && x >= 0 && x < 5;
				int64_t want = inside ? calls_get(c, IN, (feature * 4 + y) * 5 + x) : padding;
				ck_assert_int_eq(calls_get(c, OUT, at), want);
			}
	ck_assert_int_eq(c->call.counts.saturated, 0);
}

START_TEST(every_type)
{
	static const int64_t paddings[][4] = {
		{0, 0, 0, 0}, {1, 2, 3, 4}, {0, 3, 0, 0}, {0, 0, 7, 0}, {2, 0, 0, 1}};
	static const int dtypes[] = {NPUMEM_FX8,   NPUMEM_FX16,	  NPUMEM_INT8,	NPUMEM_UINT8,
				     NPUMEM_INT16, NPUMEM_UINT16, NPUMEM_INT32, NPUMEM_UINT32};
	uint64_t state = 751;
	for (unsigned t = 0; t < sizeof(dtypes) / sizeof(dtypes[0]); t++)
		for (unsigned p = 0; p < sizeof(paddings) / sizeof(paddings[0]); p++) {
			int64_t low, high;
			npumem_dtype_range(dtypes[t], &low, &high);
			const int64_t values[] = {0, low, high, 1, low / 3};
			for (int v = 0; v < 5; v++) {
				struct calls c;
				set_up(&c, dtypes[t], paddings[p], v > 0, values[v]);
				calls_sample(&c, IN, &state);
				check_against_loops(&c, paddings[p], values[v]);
				calls_free(&c);
			}
		}
}
END_TEST

START_TEST(fp32)
{
	static const int64_t sides[4] = {1, 0, 2, 0};
	static const int64_t values[] = {0, 1, -3, 16777216, -16777216};
	for (int v = 0; v < 5; v++) {
		struct calls c;
		float real = (float)values[v];
		uint32_t bits;
		memcpy(&bits, &real, sizeof(bits));
		set_up(&c, NPUMEM_FP32, sides, v > 0, values[v]);
		for (int64_t i = 0; i < 120; i++)
			calls_put(&c, IN, i, 0x7fc00000 + i); /* NaNs pass as they are */
		check_against_loops(&c, sides, bits);
		calls_free(&c);
	}
}
END_TEST

/* Without padding= nothing is padded. */
START_TEST(no_padding)
{
	static const int64_t sides[4] = {0, 0, 0, 0};
	struct calls c;
	uint64_t state = 752;
	set_up(&c, NPUMEM_FX16, sides, false, 0);
	calls_param(&c, NPUMEM_PARAM_PADDING, 0, 9, 9, 9, 9);
	calls_sample(&c, IN, &state);
	check_against_loops(&c, sides, 0);
	calls_free(&c);
}
END_TEST

START_TEST(progress)
{
	struct calls c;
	set_up(&c, NPUMEM_FX8, (const int64_t[4]){1, 2, 3, 4}, false, 0);
	progress_check(&c, OUT, 7 * 12);
	calls_free(&c);
}
END_TEST

START_TEST(refusals)
{
	static const int64_t sides[4] = {1, 2, 3, 4};
	static const struct {
		int64_t sides[4];
		const char *text;
	} paddings[] = {
		{{-1, 2, 3, 4}, "pad2d: padding top is -1, but must be 0 to 2147483647"},
		{{1, INT64_MIN, 3, 4}, "pad2d: padding bottom is -9223372036854775808, but must be 0 to"},
		{{1, 2, INT64_MAX, 4}, "pad2d: padding left is 9223372036854775807, but must be 0 to"},
		{{1, 2, 3, INT64_C(1) << 31}, "pad2d: padding right is 2147483648, but must be 0 to 2147483647"},
		{{2, 2, 3, 4}, "pad2d: out has H 7, but in and padding give 8"},
		{{1, 2, INT32_MAX, INT32_MAX}, "pad2d: out has W 12, but in and padding give 4294967299"},
	};
	static const struct {
		int dtype;
		int64_t value;
		const char *text;
	} values[] = {
		{NPUMEM_FX8, 128, "pad2d: value fx8 is 128, but must be -128 to 127"},
		{NPUMEM_FX16, -32769, "pad2d: value fx16 is -32769, but must be -32768 to 32767"},
		{NPUMEM_UINT8, -1, "pad2d: value uint8 is -1, but must be 0 to 255"},
		{NPUMEM_UINT16, 65536, "pad2d: value uint16 is 65536, but must be 0 to 65535"},
		{NPUMEM_UINT32, INT64_C(1) << 32,
		 "pad2d: value uint32 is 4294967296, but must be 0 to 4294967295"},
		{NPUMEM_FP32, 16777217, "pad2d: value fp32 is 16777217, but must be -16777216 to 16777216"},
		{NPUMEM_FP32, INT64_MIN, "pad2d: value fp32 is -9223372036854775808"},
	};
	struct calls c;
	set_up(&c, NPUMEM_FX8, sides, true, 5);
	struct kernel_operand *out = &c.operands[OUT][0];
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
	ck_assert(!c.kernel->in_place);
	for (unsigned i = 0; i < sizeof(paddings) / sizeof(paddings[0]); i++) {
		const int64_t *p = paddings[i].sides;
		calls_param(&c, NPUMEM_PARAM_PADDING, 4, p[0], p[1], p[2], p[3]);
		calls_refused(&c, paddings[i].text);
	}
	calls_param(&c, NPUMEM_PARAM_PADDING, 4, 1, 2, 3, 4);
	out->dtype = NPUMEM_FX16;
	calls_refused(&c, "pad2d: out is fx16, but must be fx8 as in is");
	out->dtype = NPUMEM_FX8;
	out->frac_bits = 4;
	calls_refused(&c, "pad2d: out has 4 frac_bits, but must have the 33 of in");
	out->frac_bits = 33;
	out->shape.c = 4;
	calls_refused(&c, "pad2d: out has C 4, but in and padding give 3");
	calls_free(&c);
	for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		set_up(&c, values[i].dtype, sides, true, values[i].value);
		calls_refused(&c, values[i].text);
		calls_free(&c);
	}
}
END_TEST

Suite *suite_pad2d(void)
{
	Suite *suite = suite_create("device/kernels/pad2d");
	TCase *tcase = tcase_create("pad2d");
	tcase_add_test(tcase, every_type);
	tcase_add_test(tcase, fp32);
	tcase_add_test(tcase, no_padding);
	tcase_add_test(tcase, progress);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
