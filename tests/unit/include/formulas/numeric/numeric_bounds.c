/* The bounds against everything that small operands can do, and the real widths at their edges. */
#include <string.h>

#include "include/formulas/numeric/numeric_bounds.h"
#include "tests/support/test.h"

/* ---- small widths, all operands ---- */

static int64_t magnitude(int64_t value)
{
	return value < 0 ? -value : value;
}

/* Widens `span` to all totals of n more products; weights_left is what |weights| may still add up to. */
static void all_totals(const struct numeric_load *load, int64_t n, int64_t weights_left, int64_t total,
		       struct numeric_span *span)
{
	if (n == 0) {
		total += total < 0 ? load->bias.low : load->bias.high;
		span->low = total < span->low ? total : span->low;
		span->high = total > span->high ? total : span->high;
		return;
	}
	for (int64_t w = load->weights.low; w <= load->weights.high; w++) {
		if (load->weights_sum && magnitude(w) > weights_left)
			continue;
		for (int64_t d = load->data.low; d <= load->data.high; d++)
			all_totals(load, n - 1, weights_left - magnitude(w), total + d * w, span);
	}
}

static struct numeric_span brute(const struct numeric_load *load)
{
	struct numeric_span span = {load->bias.low, load->bias.high};
	all_totals(load, load->n, load->weights_sum, 0, &span);
	return span;
}

static const struct numeric_span small[] = {{-4, 3}, {-2, 1}, {-4, 4}, {-1, 0}, {-2, 2}};
static const struct numeric_span biases[] = {{0, 0}, {-4, 3}, {-16, 12}, {-128, 96}};

TEST(extremes_of_all_small_operands)
{
	for (unsigned d = 0; d < 5; d++) {
		for (unsigned w = 0; w < 5; w++) {
			for (int64_t n = 0; n <= 3; n++) {
				struct numeric_load load = {.data = small[d],
							    .weights = small[w],
							    .bias = biases[(d + w) % 4],
							    .n = n};
				struct numeric_span is = numeric_bounds_extremes(&load), all = brute(&load);
				ck_assert_int_eq(is.high, all.high);
				ck_assert_int_eq(is.low, all.low);
				/* Data is no narrower than weights, as in the device. */
				for (int64_t sum = 1; sum <= -n * small[w].low && small[w].low >= small[d].low;
				     sum++) {
					load.weights_sum = sum;
					is = numeric_bounds_extremes(&load);
					all = brute(&load);
					ck_assert_int_eq(is.high, all.high);
					ck_assert_int_eq(is.low, all.low);
				}
			}
		}
	}
}

/* An accumulator of 5 to 9 bits: the count that is safe by formula against counting up. */
TEST(safe_counts_of_small_accumulators)
{
	unsigned up_seen = 0, down_seen = 0, never_seen = 0;
	for (unsigned bits = 5; bits <= 9; bits++) {
		for (unsigned i = 0; i < 5 * 5 * 4; i++) {
			int64_t end = INT64_C(1) << (bits - 1);
			struct numeric_load load = {.data = small[i % 5],
						    .weights = small[i / 5 % 5],
						    .bias = biases[i / 25],
						    .accumulator = {-end, end - 1}};
			struct numeric_span one = numeric_bounds_product(&load);
			bool up;
			if (one.low == 0)
				continue;
			int64_t safe = numeric_bounds_steps(&load, one.low, one.high, &up), n = 0;
			load.n = 0;
			if (!numeric_bounds_fit(&load)) {
				ck_assert_int_eq(safe, -1);
				never_seen++;
				continue;
			}
			for (; numeric_bounds_fit(&load); load.n = ++n)
				;
			ck_assert_int_eq(safe, n - 1);
			struct numeric_span total = numeric_bounds_extremes(&load);
			ck_assert(up ? total.high >= end : total.low < -end);
			up_seen += up;
			down_seen += !up;
		}
	}
	ck_assert(up_seen && down_seen && never_seen);
}

/* ---- what giving up bits does to values ---- */

static int64_t rounded(int64_t value, int64_t bits, int mode)
{
	int64_t down = value >> bits, rest = value - down * (1 << bits), half = (1 << bits) / 2;
	bool up = rest > half || (bits && rest == half &&
				  (mode == NPUMEM_UP || (mode == NPUMEM_NEAREST ? value > 0 : down % 2 != 0)));
	return down + up;
}

TEST(requantized_values_stay_in_their_range)
{
	for (int64_t bits = 0; bits <= 6; bits++) {
		struct npumem_terms terms;
		struct numeric_load load;
		npumem_terms_init(&terms);
		terms.data_dtype = terms.weights_dtype = NPUMEM_FX8;
		numeric_bounds_load(&terms, bits, 0, &load);
		int64_t low = 0, high = 0;
		for (int mode = NPUMEM_CONVERGENT; mode <= NPUMEM_NEAREST; mode++)
			for (int64_t value = INT8_MIN; value <= INT8_MAX; value++) {
				int64_t to = rounded(value, bits, mode);
				low = to < low ? to : low;
				high = to > high ? to : high;
			}
		ck_assert_int_eq(load.data.low, low);
		ck_assert_int_eq(load.data.high, high);
	}
}

/* A bias that would have more frac_bits than data and weights loses them with theirs. */
TEST(requantized_bias)
{
	for (int64_t bits = 0; bits <= 9; bits++) {
		struct npumem_terms terms = {.data_dtype = NPUMEM_FX8,
					     .weights_dtype = NPUMEM_FX8,
					     .data_frac_bits = 7,
					     .weights_frac_bits = 7,
					     .has_bias = true,
					     .bias_frac_bits = 12};
		struct numeric_load load;
		int64_t low = 0, high = 0, shift = 2 - bits;
		numeric_bounds_load(&terms, bits / 2, bits - bits / 2, &load);
		for (int mode = NPUMEM_CONVERGENT; mode <= NPUMEM_NEAREST; mode++)
			for (int64_t value = INT8_MIN; value <= INT8_MAX; value++) {
				int64_t to = shift < 0 ? rounded(value, -shift, mode) : value * (1 << shift);
				low = to < low ? to : low;
				high = to > high ? to : high;
			}
		ck_assert_int_eq(load.bias.low, low);
		ck_assert_int_eq(load.bias.high, high);
	}
}

TEST(requantized_weights_add_up_to_no_more)
{
	uint32_t seed = 1;
	for (unsigned i = 0; i < 2000; i++) {
		int64_t n = 1 + i % 7, bits = 1 + i % 6, after = 0;
		struct npumem_terms terms;
		struct numeric_load load;
		npumem_terms_init(&terms);
		terms.data_dtype = terms.weights_dtype = NPUMEM_FX8;
		terms.n = n;
		for (int64_t k = 0; k < n; k++) {
			seed = seed * 1664525 + 1013904223;
			int64_t weight = (int8_t)(seed >> 24) / (int8_t)(1 << i % 5);
			terms.weights_sum += magnitude(weight);
			after += magnitude(rounded(weight, bits, NPUMEM_NEAREST));
		}
		if (!terms.weights_sum)
			continue;
		numeric_bounds_load(&terms, 0, bits, &load);
		ck_assert_int_ge(load.weights_sum, after);
		/* Not more than the largest weights either. */
		terms.weights_sum = n * 128;
		numeric_bounds_load(&terms, 0, bits, &load);
		ck_assert_int_eq(load.weights_sum, n * load.weights.high);
	}
}

/* ---- the real widths ---- */

static struct npumem_terms products(int data, int weights)
{
	struct npumem_terms terms;
	npumem_terms_init(&terms);
	terms.data_dtype = data;
	terms.weights_dtype = weights;
	return terms;
}

static struct npumem_bound bound_of(const struct npumem_terms *terms)
{
	struct npumem_error error = {0};
	struct npumem_bound bound;
	ck_assert_msg(npumem_bound(terms, &bound, &error) == 0, "%s", error.message);
	return bound;
}

TEST(one_more_breaks)
{
	static const struct {
		int data, weights;
		int64_t safe, reached;
		const char *breaks;
	} cases[] = {
		{NPUMEM_FX8, NPUMEM_FX8, 131071, INT64_C(1) << 31,
		 "131072 products of -128 * -128 reach 2^31 = 2147483648, past 2147483647"},
		{NPUMEM_FX16, NPUMEM_FX16, 511, INT64_C(1) << 39,
		 "512 products of -32768 * -32768 reach 2^39 = 549755813888, past 549755813887"},
		{NPUMEM_FX16, NPUMEM_FX8, 131071, INT64_C(1) << 39,
		 "131072 products of -32768 * -128 reach 2^39 = 549755813888, past 549755813887"},
	};
	for (unsigned i = 0; i < 3; i++) {
		struct npumem_terms terms = products(cases[i].data, cases[i].weights);
		struct npumem_bound bound = bound_of(&terms);
		ck_assert_int_eq(bound.safe, cases[i].safe);
		ck_assert_str_eq(bound.breaks, cases[i].breaks);
		ck_assert(!bound.can_overflow);
		terms.n = cases[i].safe;
		bound = bound_of(&terms);
		ck_assert(!bound.can_overflow);
		ck_assert_int_le(bound.most, bound.high);
		terms.n++;
		bound = bound_of(&terms);
		ck_assert(bound.can_overflow);
		ck_assert_int_eq(bound.most, cases[i].reached);
		ck_assert_int_eq(bound.most, bound.high + 1);
		ck_assert_int_ge(bound.least, bound.low);
	}
}

TEST(plain_sums)
{
	static const struct {
		int dtype;
		const char *breaks;
	} cases[] = {
		{NPUMEM_FX8, "16777217 values of -128 reach -2147483776, past -2147483648"},
		{NPUMEM_FX16, "16777217 values of -32768 reach -549755846656, past -549755813888"},
	};
	for (unsigned i = 0; i < 2; i++) {
		struct npumem_terms terms = products(cases[i].dtype, 0);
		struct npumem_bound bound = bound_of(&terms);
		ck_assert_int_eq(bound.safe, 1 << 24);
		ck_assert_int_eq(bound.safe_weights_sum, -1);
		ck_assert_str_eq(bound.breaks, cases[i].breaks);
		terms.n = 1 << 24;
		bound = bound_of(&terms);
		ck_assert_int_eq(bound.least, bound.low);
		ck_assert(!bound.can_overflow);
	}
}

static struct npumem_bound with_bias(int data, int weights, int64_t n, int64_t shift)
{
	struct npumem_terms terms = products(data, weights);
	terms.n = n;
	terms.has_bias = true;
	terms.data_frac_bits = shift / 2;
	terms.weights_frac_bits = shift - shift / 2;
	terms.bias_frac_bits = 0;
	return bound_of(&terms);
}

TEST(bias_counts)
{
	/* 2^31 - 1 - 127 leaves one product less. */
	struct npumem_bound bound = with_bias(NPUMEM_FX8, NPUMEM_FX8, 131071, 0);
	ck_assert_int_eq(bound.safe, 131071);
	ck_assert_int_eq(bound.most, 131071 * INT64_C(16384) + 127);
	ck_assert_int_eq(bound.least, 131071 * INT64_C(-16256) - 128);
	/* The largest sum of 131071 products leaves 16383, and 127 << 7 is 16256; << 8 is past it. */
	ck_assert_int_eq(with_bias(NPUMEM_FX8, NPUMEM_FX8, 0, 7).safe, 131071);
	bound = with_bias(NPUMEM_FX8, NPUMEM_FX8, 131071, 8);
	ck_assert_int_eq(bound.safe, 131070);
	ck_assert(bound.can_overflow);
	ck_assert_str_eq(bound.breaks, "131071 products of -128 * -128 and a bias of 127 << 8 reach 2147499776, "
				       "past 2147483647");
	/* -128 << 24 is -2^31 itself, so that nothing below 0 may be added: it breaks downward. */
	bound = with_bias(NPUMEM_FX8, NPUMEM_FX8, 0, 24);
	ck_assert_int_eq(bound.safe, 0);
	ck_assert(!bound.can_overflow);
	ck_assert_int_eq(bound.least, INT32_MIN);
	ck_assert_str_eq(bound.breaks,
			 "1 product of -128 * 127 and a bias of -128 << 24 reach -2147499904, past -2147483648");
	bound = with_bias(NPUMEM_FX8, NPUMEM_FX8, 0, 25);
	ck_assert_int_eq(bound.safe, -1);
	ck_assert_int_eq(bound.safe_weights_sum, -1);
	ck_assert(bound.can_overflow);
	ck_assert_str_eq(bound.breaks, "a bias of 127 << 25 alone reaches 4261412864, past 2147483647");
	bound = with_bias(NPUMEM_FX16, NPUMEM_FX8, 1, 39);
	ck_assert_int_eq(bound.safe, -1);
	bound = with_bias(NPUMEM_FX16, NPUMEM_FX16, 1, 40);
	ck_assert_int_lt(bound.most, INT64_MAX);
	/* The mixed product is lowest where the data is not the minimum: -32767 * ... is -32768 * 127 or 32767 *
	 * -128. */
	bound = with_bias(NPUMEM_FX16, NPUMEM_FX8, 0, 32);
	ck_assert_str_eq(bound.breaks, "1 product of 32767 * -128 and a bias of -128 << 32 reach -549760008064, "
				       "past -549755813888");
	for (int64_t shift = 41; shift <= 254; shift++) {
		bound = with_bias(NPUMEM_FX16, NPUMEM_FX16, 1, shift);
		ck_assert(bound.can_overflow);
		ck_assert_int_eq(bound.safe, -1);
		ck_assert_int_eq(bound.most, INT64_MAX);
		ck_assert_int_eq(bound.least, INT64_MIN);
	}
	ck_assert_str_eq(bound.breaks,
			 "any bias but 0 is past the 40 bits of the accumulator: it is shifted left by 254");
}

TEST(weights_that_are_known)
{
	struct npumem_terms terms = products(NPUMEM_FX16, NPUMEM_FX16);
	struct npumem_bound bound = bound_of(&terms);
	ck_assert_int_eq(bound.safe_weights_sum, (1 << 24) - 1);
	terms.n = 100000;
	ck_assert(bound_of(&terms).can_overflow);
	terms.weights_sum = (1 << 24) - 1;
	bound = bound_of(&terms);
	ck_assert(!bound.can_overflow);
	ck_assert_int_eq(bound.most, ((INT64_C(1) << 24) - 1) * 32768);
	terms.weights_sum++;
	bound = bound_of(&terms);
	ck_assert(bound.can_overflow);
	ck_assert_int_eq(bound.most, INT64_C(1) << 39);
	ck_assert_str_eq(bound.breaks,
			 "data of -32768 with negative weights that add up to -16777216 reach 2^39 = "
			 "549755813888, past 549755813887");
	/* However many they are. */
	terms.n = 0;
	ck_assert(bound_of(&terms).can_overflow);
	/* 511 minimum weights give no more than 511 products. */
	terms.n = 511;
	terms.weights_sum = 511 * 32768;
	ck_assert(!bound_of(&terms).can_overflow);
}

TEST(a_bias_of_unknown_format_is_one_more)
{
	struct npumem_terms terms = products(NPUMEM_FX16, NPUMEM_FX16);
	terms.has_bias = true;
	struct npumem_bound bound = bound_of(&terms);
	ck_assert_int_eq(bound.safe, 510);
	ck_assert_str_eq(bound.breaks, "511 products of -32768 * -32768 and a bias like one more reach 2^39 = "
				       "549755813888, past 549755813887");
}

TEST(refusals)
{
	static const struct {
		struct npumem_terms terms;
		const char *part;
	} cases[] = {
		{{.data_dtype = 0}, "data is of no type, but must be fx8 or fx16"},
		{{.data_dtype = NPUMEM_INT8}, "data is int8"},
		{{.data_dtype = NPUMEM_FX8, .weights_dtype = NPUMEM_FX16},
		 "weights are fx16, but must be fx8 with fx8"},
		{{.data_dtype = NPUMEM_FX16, .weights_dtype = NPUMEM_FP32},
		 "weights are fp32, but must be fx16 or fx8"},
		{{.data_dtype = NPUMEM_FX16, .weights_dtype = 99}, "weights are of no type"},
		{{.data_dtype = NPUMEM_FX16, .has_bias = true}, "a bias without weights"},
		{{.data_dtype = NPUMEM_FX16, .data_frac_bits = 128}, "data: 128 frac_bits is not in 0..127"},
		{{.data_dtype = NPUMEM_FX16, .weights_dtype = NPUMEM_FX16, .weights_frac_bits = -2},
		 "weights: -2 frac_bits"},
		{{.data_dtype = NPUMEM_FX16,
		  .weights_dtype = NPUMEM_FX16,
		  .has_bias = true,
		  .bias_frac_bits = 300},
		 "bias: 300 frac_bits"},
		{{.data_dtype = NPUMEM_FX16,
		  .weights_dtype = NPUMEM_FX16,
		  .has_bias = true,
		  .data_frac_bits = 7,
		  .weights_frac_bits = 3,
		  .bias_frac_bits = 11},
		 "the bias has 11 frac_bits, more than the 10 of data (7) and weights (3)"},
		{{.data_dtype = NPUMEM_FX16,
		  .weights_dtype = NPUMEM_FX16,
		  .has_bias = true,
		  .data_frac_bits = NPUMEM_ANY,
		  .bias_frac_bits = 11},
		 "the bias has 11 frac_bits, but those of data and weights are not given"},
		{{.data_dtype = NPUMEM_FX16, .n = -1}, "-1 products of one output is not in 0..4294967296"},
		{{.data_dtype = NPUMEM_FX16, .n = (INT64_C(1) << 32) + 1}, "4294967297 products"},
		{{.data_dtype = NPUMEM_FX16, .weights_sum = 1}, "a sum of |weights| without weights"},
		{{.data_dtype = NPUMEM_FX16, .weights_dtype = NPUMEM_FX8, .n = 2, .weights_sum = 257},
		 "a sum of |weights| of 257 is not in 0..256, which is all that 2 weights of fx8 can have"},
		{{.data_dtype = NPUMEM_FX16, .weights_dtype = NPUMEM_FX8, .n = 2, .weights_sum = -1}, "of -1"},
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct npumem_error error = {0};
		struct npumem_bound bound = {.safe = 77};
		ck_assert_int_eq(npumem_bound(&cases[i].terms, &bound, &error), NPUMEM_INVALID);
		ck_assert_msg(strstr(error.message, cases[i].part), "\"%s\" does not say \"%s\"", error.message,
			      cases[i].part);
		ck_assert_int_eq(bound.safe, 77);
	}
}
