#include <string.h>

#include <npumem/numeric.h>

#include "tests/support/test.h"

/* Every operand of every small format, as integers of `shift` fractional bits. */
enum { SHIFT = 12 };

static bool holds(const struct npumem_format *format, int64_t value)
{
	int64_t end = format->integer_bits + SHIFT < 0 ? 0 : INT64_C(1) << (format->integer_bits + SHIFT);
	int64_t step = INT64_C(1) << (SHIFT - format->frac_bits);
	return value >= -end && value <= end - step && value % step == 0;
}

static int64_t low_of(const struct npumem_format *x)
{
	return -(INT64_C(1) << (x->integer_bits + x->frac_bits));
}

/* Whether `every` holds what the operation gives for all operands, and no smaller format does; and how many
 * results the rule's own format does not hold. */
static unsigned check_every(char operation, const struct npumem_format *x, const struct npumem_format *y,
			    const struct npumem_format_result *result)
{
	struct npumem_format smaller = result->every;
	bool every = true, one_less = true;
	unsigned beyond = 0;
	smaller.integer_bits--;
	for (int64_t a = low_of(x); a < -low_of(x); a++) {
		for (int64_t b = low_of(y); b < -low_of(y); b++) {
			int64_t value, sx = INT64_C(1) << (SHIFT - x->frac_bits),
				       sy = INT64_C(1) << (SHIFT - y->frac_bits);
			if (operation == '/' && b == 0)
				continue;
			if (operation == '+' || operation == '-')
				value = a * sx + (operation == '+' ? b * sy : -b * sy);
			else if (operation == '*')
				value = a * b * (INT64_C(1) << (SHIFT - x->frac_bits - y->frac_bits));
			else
				value = a / b * (INT64_C(1) << (SHIFT - x->frac_bits + y->frac_bits));
			every &= holds(&result->every, value);
			one_less &= holds(&smaller, value);
			beyond += !holds(&result->format, value);
		}
	}
	ck_assert_msg(every, "Q%d.%d %c Q%d.%d", (int)x->integer_bits, (int)x->frac_bits, operation,
		      (int)y->integer_bits, (int)y->frac_bits);
	ck_assert_msg(!one_less, "Q%d.%d %c Q%d.%d: too wide", (int)x->integer_bits, (int)x->frac_bits, operation,
		      (int)y->integer_bits, (int)y->frac_bits);
	return beyond;
}

TEST(all_operands_of_all_small_formats)
{
	struct npumem_format_result result;
	for (int i = 0; i < 5 * 6 * 5 * 6; i++) {
		struct npumem_format x = {.frac_bits = i % 5 - 1}, y = {.frac_bits = i / 30 % 5 - 1};
		x.integer_bits = i / 5 % 6 - x.frac_bits;
		y.integer_bits = i / 150 % 6 - y.frac_bits;
		ck_assert_int_eq(npumem_format_add(&x, &y, &result, NULL), 0);
		ck_assert_uint_eq(check_every('+', &x, &y, &result), 0);
		/* 0 bits beside the sign hold -1 and 0, so that a difference need not use the bit. */
		if (x.integer_bits + x.frac_bits > 0 && y.integer_bits + y.frac_bits > 0)
			ck_assert_uint_eq(check_every('-', &x, &y, &result), 0);
		/* "min * min" is the only product past the rule's format. */
		ck_assert_int_eq(npumem_format_mul(&x, &y, &result, NULL), 0);
		ck_assert_uint_eq(check_every('*', &x, &y, &result), 1);
		ck_assert_int_eq(npumem_format_div(&x, &y, &result, NULL), 0);
		check_every('/', &x, &y, &result);
		ck_assert_int_eq(result.precision_lost,
				 x.integer_bits + x.frac_bits <= y.integer_bits + y.frac_bits);
	}
}

TEST(sums_of_extremes)
{
	for (int64_t n = 1; n < 300; n++) {
		struct npumem_format x = {3, 4};
		struct npumem_format_result result;
		ck_assert_int_eq(npumem_format_sum(&x, n, &result, NULL), 0);
		int64_t end = INT64_C(1) << (result.format.integer_bits + 4);
		ck_assert_int_ge(n * -128, -end);
		ck_assert_int_le(n * 127, end - 1);
		ck_assert(n == 1 || n * -128 < -end / 2); /* and not with one bit less */
		ck_assert_int_eq(result.extra_bits, npumem_extra_bits(n));
	}
	ck_assert_int_eq(npumem_extra_bits(INT64_MIN), 0);
	ck_assert_int_eq(npumem_extra_bits(1), 0);
	ck_assert_int_eq(npumem_extra_bits(2), 1);
	ck_assert_int_eq(npumem_extra_bits(1 << 24), 24);
	ck_assert_int_eq(npumem_extra_bits((1 << 24) + 1), 25);
	ck_assert_int_eq(npumem_extra_bits(INT64_MAX), 63);
}

TEST(text)
{
	static const char *const good[] = {"Q4.3", "Q0.15", "Q-3.10", "Q4.-4", "Q1023.-1023"};
	static const char *const bad[] = {"",	  "Q",	   "Q.7",   "Q4",    "Q4.",  "4.3",
					  "q4.3", "Q4.3x", "Q 4.3", "Q4.+3", "Q4,3", "Q4.99999999999999999999"};
	char buffer[NPUMEM_FORMAT_TEXT_BYTES];
	struct npumem_format format;
	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		ck_assert_int_eq(npumem_format_parse(good[i], &format, NULL), 0);
		ck_assert_str_eq(npumem_format_text(&format, buffer), good[i]);
	}
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct npumem_error error = {0};
		ck_assert_int_eq(npumem_format_parse(bad[i], &format, &error), NPUMEM_INVALID);
		ck_assert_msg(strstr(error.message, bad[i]), "\"%s\"", error.message);
	}
	ck_assert_int_eq(npumem_format_parse(NULL, &format, NULL), NPUMEM_INVALID);
}

static void refused(int status, const struct npumem_error *error, const char *part)
{
	ck_assert_int_eq(status, NPUMEM_INVALID);
	ck_assert_msg(strstr(error->message, part), "\"%s\" does not say \"%s\"", error->message, part);
}

TEST(refusals)
{
	static const struct {
		struct npumem_format x;
		const char *part;
	} cases[] = {
		{{1024, 0}, "1024 integer bits is not in -1023..1023"},
		{{0, 1024}, "1024 fractional bits is not in -1023..1023"},
		{{INT64_MIN, INT64_MAX}, "integer bits"},
		{{-1024, 1023}, "-1024 integer bits"},
		{{2, -3}, "Q2.-3 has -1 bits beside the sign, fewer than 0"},
	};
	static const struct npumem_format good = {3, 4};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct npumem_format_result result = {.extra_bits = 77};
		struct npumem_error error = {0};
		refused(npumem_format_add(&cases[i].x, &good, &result, &error), &error, cases[i].part);
		npumem_error_clear(&error);
		refused(npumem_format_mul(&good, &cases[i].x, &result, &error), &error, cases[i].part);
		npumem_error_clear(&error);
		refused(npumem_format_div(&good, &cases[i].x, &result, &error), &error, cases[i].part);
		npumem_error_clear(&error);
		refused(npumem_format_sum(&cases[i].x, 2, &result, &error), &error, cases[i].part);
		ck_assert_int_eq(result.extra_bits, 77);
	}
	struct npumem_format_result result;
	struct npumem_format format;
	struct npumem_error error = {0};
	refused(npumem_format_sum(&good, 0, &result, &error), &error, "a sum of 0 values: at least 1");
	npumem_error_clear(&error);
	refused(npumem_format_of(NPUMEM_INT8, 3, &format, &error), &error, "int8 is not fx8 or fx16");
	npumem_error_clear(&error);
	refused(npumem_format_of(99, 3, &format, &error), &error, "not fx8");
	npumem_error_clear(&error);
	refused(npumem_format_of(NPUMEM_FX8, 128, &format, &error), &error, "128 frac_bits is not in 0..127");
	npumem_error_clear(&error);
	refused(npumem_format_of(NPUMEM_FX8, -1, &format, &error), &error, "-1 frac_bits");
}
