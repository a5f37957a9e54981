/* Every worked example and figure about formats and accumulators in the vendor's "Arithmetic Details" chapter,
 * with its own numbers. Those that round a value are with the code that rounds: daemon/device/fixed. */
#include <math.h>
#include <string.h>

#include <npumem/numeric.h>

#include "tests/support/test.h"

static struct npumem_format format(const char *text)
{
	struct npumem_format parsed;
	ck_assert_int_eq(npumem_format_parse(text, &parsed, NULL), 0);
	return parsed;
}

static void is(const struct npumem_format *result, const char *expected)
{
	char text[NPUMEM_FORMAT_TEXT_BYTES];
	ck_assert_str_eq(npumem_format_text(result, text), expected);
}

static struct npumem_format of(int dtype, int64_t frac_bits, const char *expected)
{
	struct npumem_format result;
	ck_assert_int_eq(npumem_format_of(dtype, frac_bits, &result, NULL), 0);
	is(&result, expected);
	return result;
}

/* What the format makes of the container's integer, and whether it holds that at all. */
static double real(const struct npumem_format *in, int64_t value, bool *held)
{
	double low, high, result = ldexp((double)value, -(int)in->frac_bits);
	npumem_format_range(in, &low, &high);
	*held = result >= low && result <= high;
	return result;
}

TEST(data_storage)
{
	bool held;
	struct npumem_format q = of(NPUMEM_FX16, 15, "Q0.15");
	ck_assert(real(&q, 0x4000, &held) == 0.5 && held);
	q = of(NPUMEM_FX16, 14, "Q1.14");
	ck_assert(real(&q, 0x4000, &held) == 1.0 && held);
	/* The chapter says 0.3125. */
	q = of(NPUMEM_FX16, 10, "Q5.10");
	ck_assert(real(&q, 0x20, &held) == 0.03125 && held);
	ck_assert(real(&q, 0x220, &held) == 0.53125 && held);
	/* "In this case all bits not present in the container implied equal to sign bit." */
	q = of(NPUMEM_FX8, 10, "Q-3.10");
	ck_assert(real(&q, 0x20, &held) == 0.03125 && held);
	ck_assert(real(&q, 0x220, &held) == 0.53125 && !held);
}

TEST(asymmetric_ranges)
{
	double low, high;
	struct npumem_format q = of(NPUMEM_FX8, 7, "Q0.7");
	npumem_format_range(&q, &low, &high);
	ck_assert(low == -1.0 && high == 0.9921875);
	q = of(NPUMEM_FX16, 15, "Q0.15");
	npumem_format_range(&q, &low, &high);
	ck_assert(low == -1.0 && high == 0.999969482421875);
}

TEST(addition)
{
	struct npumem_format x = format("Q3.4"), y = format("Q5.1");
	struct npumem_format_result result;
	/* "only when the input values are in the same format. Otherwise … conversion" */
	ck_assert_int_eq(npumem_format_add(&x, &x, &result, NULL), 0);
	ck_assert(result.shift_x == 0 && result.shift_y == 0);
	/* "an extra bit is required for this operation" */
	is(&result.format, "Q4.4");
	ck_assert_int_eq(result.extra_bits, 1);
	ck_assert_int_eq(npumem_format_add(&x, &y, &result, NULL), 0);
	ck_assert(result.shift_x == 0 && result.shift_y == 3);
	is(&result.format, "Q6.4");
}

TEST(multiplication)
{
	struct npumem_format x = format("Q4.3"), y = format("Q5.7");
	struct npumem_format_result result;
	ck_assert_int_eq(npumem_format_mul(&x, &y, &result, NULL), 0);
	is(&result.format, "Q9.10");
}

TEST(division)
{
	struct npumem_format x = format("Q16.16"), y = format("Q7.10");
	struct npumem_format_result result;
	ck_assert_int_eq(npumem_format_div(&x, &y, &result, NULL), 0);
	is(&result.format, "Q9.6");
	ck_assert_int_eq(result.significant_bits, 15);
	ck_assert(!result.precision_lost);
	x = format("Q7.8");
	y = format("Q3.12");
	ck_assert_int_eq(npumem_format_div(&x, &y, &result, NULL), 0);
	is(&result.format, "Q4.-4");
	/* "4 + (-4) = 0. This means total precision loss" */
	ck_assert_int_eq(result.significant_bits, 0);
	ck_assert(result.precision_lost);
	/* "conversion of dividend operand to a bigger format … is required" */
	x = format("Q7.9");
	ck_assert_int_eq(npumem_format_div(&x, &y, &result, NULL), 0);
	ck_assert(!result.precision_lost);
}

TEST(accumulation)
{
	struct npumem_format x = format("Q3.4");
	struct npumem_format_result result;
	/* "ceil(log2 34) = ceil(5.09) = 6. Result format is: Q9.4" */
	ck_assert_int_eq(npumem_extra_bits(34), 6);
	ck_assert_int_eq(npumem_format_sum(&x, 34, &result, NULL), 0);
	ck_assert_int_eq(result.extra_bits, 6);
	is(&result.format, "Q9.4");
}

/* "Input tensor of Q.7 format; and weights tensor of Q.3 format, the number of its fractional bits … must be less
 * or equal to 10" */
TEST(bias_format)
{
	struct npumem_terms terms = {.data_dtype = NPUMEM_FX8,
				     .weights_dtype = NPUMEM_FX8,
				     .data_frac_bits = 7,
				     .weights_frac_bits = 3,
				     .has_bias = true,
				     .bias_frac_bits = 10,
				     .n = 1};
	struct npumem_error error = {0};
	struct npumem_bound bound;
	ck_assert_int_eq(npumem_bound(&terms, &bound, &error), 0);
	terms.bias_frac_bits = 11;
	ck_assert_int_eq(npumem_bound(&terms, &bound, &error), NPUMEM_INVALID);
	ck_assert_str_eq(error.message, "the bias has 11 frac_bits, more than the 10 of data (7) and weights (3)");
	ck_assert_int_eq(npumem_error_find(&error, "value", 0), 11);
	ck_assert_int_eq(npumem_error_find(&error, "expected", 0), 10);
}

/* Accumulators of 32 and 40 bits. The counts of products are the chapter's 2^17, 2^9 and 2^17 less one: that many
 * of the minimum by itself reach one past the end. */
TEST(accumulator_bit_depth)
{
	static const struct {
		int data, weights;
		int bits, available;
		int64_t safe;
	} figures[] = {
		{NPUMEM_FX8, NPUMEM_FX8, 32, 17, 131072 - 1},  {NPUMEM_FX8, 0, 32, 24, 16777216},
		{NPUMEM_FX16, NPUMEM_FX16, 40, 9, 512 - 1},    {NPUMEM_FX16, 0, 40, 24, 16777216},
		{NPUMEM_FX16, NPUMEM_FX8, 40, 17, 131072 - 1},
	};
	for (unsigned i = 0; i < 5; i++) {
		struct npumem_terms terms;
		struct npumem_bound bound;
		npumem_terms_init(&terms);
		terms.data_dtype = figures[i].data;
		terms.weights_dtype = figures[i].weights;
		ck_assert_int_eq(npumem_bound(&terms, &bound, NULL), 0);
		ck_assert_int_eq(bound.accumulator_bits, figures[i].bits);
		ck_assert_int_eq(bound.safe, figures[i].safe);
		ck_assert_int_eq(bound.high, (INT64_C(1) << (figures[i].bits - 1)) - 1);

		struct npumem_numeric_operand operands[] = {{"left", {1, 8, 1, 1}, NPUMEM_ANY, 0},
							    {"right", {8, 1, 1, 1}, NPUMEM_ANY, 0},
							    {"in", {1, 8, 1, 1}, NPUMEM_ANY, 0},
							    {"out", {1, 1, 1, 1}, NPUMEM_ANY, 0}};
		bool plain = !figures[i].weights;
		struct npumem_advise question = {.kernel = plain ? "reduce_sum" : "matmul",
						 .data_dtype = figures[i].data,
						 .weights_dtype = figures[i].weights,
						 .operands = operands + 2 * plain,
						 .n_operands = 2};
		struct npumem_advice advice;
		ck_assert_int_eq(npumem_advise(&question, &advice, NULL), 0);
		ck_assert_int_eq(advice.sums[0].available_bits, figures[i].available);
	}
}

/* "fx16 operands, 2D Convolution layer with 5x5 kernel size on input with 64 channels, Initial Input tensor format
 * being Q.11, Initial weights tensor format being Q.15" */
TEST(convolution)
{
	struct npumem_numeric_operand operands[] = {
		{"in", {1, 64, 32, 32}, 11, 0}, {"weights", {64, 32, 5, 5}, 15, 0}, {"bias", {0}, NPUMEM_ANY, 0}};
	struct npumem_advise question = {
		.kernel = "conv2d", .data_dtype = NPUMEM_FX16, .operands = operands, .n_operands = 3};
	struct npumem_advice advice;
	struct npumem_error error = {0};
	/* However the bias is given: not at all, up to the largest that the chapter allows, or without its format.
	 */
	for (int64_t bias = NPUMEM_ANY; bias <= 26; bias += 9) {
		operands[2].frac_bits = bias;
		ck_assert_msg(npumem_advise(&question, &advice, &error) == 0, "%s", error.message);
		const struct npumem_sum *sum = &advice.sums[0];
		ck_assert_uint_eq(advice.n_sums, 1);
		ck_assert_int_eq(sum->terms.n, 5 * 5 * 64);
		ck_assert_int_eq(sum->additions, 1601);
		ck_assert_int_eq(sum->extra_bits, 11); /* log2 1601 is 10.64 */
		ck_assert_int_eq(sum->available_bits, 9);
		ck_assert_int_eq(sum->over_bits, 2);
		ck_assert(advice.can_overflow && sum->possible);
		ck_assert_int_eq(sum->give_up_data, 1);
		ck_assert_int_eq(sum->give_up_weights, 1);
		ck_assert_int_eq(sum->data_frac_bits, 10);
		ck_assert_int_eq(sum->weights_frac_bits, 14);
		ck_assert_str_eq(sum->bound.breaks + strlen(sum->bound.breaks) - strlen("past 549755813887"),
				 "past 549755813887");
	}
	ck_assert_int_eq(advice.sums[0].bias_frac_bits, 24); /* 26 would be more than 10 + 14 */
	question.n_operands = 2;
	ck_assert_int_eq(npumem_advise(&question, &advice, NULL), 0);
	ck_assert_int_eq(advice.sums[0].additions, 1600);
	ck_assert_str_eq(advice.sums[0].advice, "give up 2 bits: in from Q.11 to Q.10, weights from Q.15 to Q.14");
	ck_assert_str_eq(advice.sums[0].bound.breaks,
			 "512 products of -32768 * -32768 reach 2^39 = 549755813888, past 549755813887");
}
