#include "include/formulas/numeric/numeric_bounds.h"
#include "tests/support/test.h"
#include "tests/unit/include/formulas/numeric/numeric_questions.h"

static struct npumem_sum matmul(int data, int weights, const char *words)
{
	return questions_answer("matmul", data, weights, words).sums[0];
}

TEST(who_gives_up_how_much)
{
	static const struct {
		int data, weights;
		const char *words;
		int64_t from_data, from_weights;
		const char *advice;
	} cases[] = {
		{NPUMEM_FX16, 0, "left=1,511:11 right=511,1:15", 0, 0,
		 "keep the formats: 511 products cannot overflow"},
		/* The chapter's estimate has room for 512; the exact bound has not. */
		{NPUMEM_FX16, 0, "left=1,512:11 right=512,1:15", 0, 1,
		 "give up 1 bit: right from Q.15 to Q.14; the odd bit of right, which has more frac_bits"},
		{NPUMEM_FX16, 0, "left=1,512:15 right=512,1:11", 1, 0,
		 "give up 1 bit: left from Q.15 to Q.14; the odd bit of left, which has more frac_bits"},
		{NPUMEM_FX16, 0, "left=1,512:15 right=512,1:15", 0, 1,
		 "give up 1 bit: right from Q.15 to Q.14; the odd bit of right, as both have as many frac_bits"},
		{NPUMEM_FX16, 0, "left=1,1023:15 right=1023,1:3", 1, 0,
		 "give up 1 bit: left from Q.15 to Q.14; the odd bit of left, which has more frac_bits"},
		/* 2^39 is one too many for 1024 products, too. */
		{NPUMEM_FX16, 0, "left=1,1024:15 right=1024,1:3", 1, 1,
		 "give up 2 bits: left from Q.15 to Q.14, right from Q.3 to Q.2"},
		{NPUMEM_FX16, 0, "left=1,4096:11 right=4096,1:0", 4, 0,
		 "give up 4 bits: left from Q.11 to Q.7; right has no more to give"},
		{NPUMEM_FX16, 0, "left=1,4096:11 right=4096,1:1", 3, 1,
		 "give up 4 bits: left from Q.11 to Q.8, right from Q.1 to Q.0; right has no more to give"},
		{NPUMEM_FX16, 0, "left=1,4096:1 right=4096,1:12", 1, 3,
		 "give up 4 bits: left from Q.1 to Q.0, right from Q.12 to Q.9; left has no more to give"},
		{NPUMEM_FX16, 0, "left=1,4096:1 right=4096,1:2", 1, 2,
		 "add up fewer than 4096 products at a time: no frac_bits are enough"},
		{NPUMEM_FX16, 0, "left=1,4096 right=4096,1", 2, 2, "give up 4 bits: 2 of left, 2 of right"},
		{NPUMEM_FX16, 0, "left=1,512 right=512,1", 0, 1,
		 "give up 1 bit: 1 of right; take the odd bit from the one with more frac_bits"},
		{NPUMEM_FX8, 0, "left=1,131071:7 right=131071,1:7", 0, 0,
		 "keep the formats: 131071 products cannot overflow"},
		{NPUMEM_FX8, 0, "left=1,1 right=1,1", 0, 0, "keep the formats: 1 product cannot overflow"},
		{NPUMEM_FX8, 0, "left=1,131072:7 right=131072,1:6", 1, 0,
		 "give up 1 bit: left from Q.7 to Q.6; the odd bit of left, which has more frac_bits"},
		{NPUMEM_FX16, NPUMEM_FX8, "left=1,131072:7 right=131072,1:6", 1, 0,
		 "give up 1 bit: left from Q.7 to Q.6; the odd bit of left, which has more frac_bits"},
		/* The bias follows where it would have more than both. */
		{NPUMEM_FX16, 0, "left=1,2000:10 right=2000,1:10 bias=:20", 1, 1,
		 "give up 2 bits: left from Q.10 to Q.9, right from Q.10 to Q.9; bias then from Q.20 to Q.18"},
		{NPUMEM_FX16, 0, "left=1,2000:10 right=2000,1:10 bias=:18", 1, 1,
		 "give up 2 bits: left from Q.10 to Q.9, right from Q.10 to Q.9"},
		/* Few products, but a bias far above them: 32767 << 25 passes 2^39 by a bit. */
		{NPUMEM_FX16, 0, "left=1,2:20 right=2,1:10 bias=:5", 1, 1,
		 "give up 2 bits: left from Q.20 to Q.19, right from Q.10 to Q.9"},
		/* Weights that are known. */
		{NPUMEM_FX16, 0, "left=1,4096:11 right=4096,1:15#16777215", 0, 0,
		 "keep the formats: weights that add up to 16777215 cannot overflow"},
		{NPUMEM_FX16, 0, "left=1,4096:11 right=4096,1:15#16777216", 0, 1,
		 "give up 1 bit: right from Q.15 to Q.14; the odd bit of right, which has more frac_bits"},
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct npumem_sum sum = matmul(cases[i].data, cases[i].weights, cases[i].words);
		ck_assert_str_eq(sum.advice, cases[i].advice);
		ck_assert_int_eq(sum.give_up_data, cases[i].from_data);
		ck_assert_int_eq(sum.give_up_weights, cases[i].from_weights);
		ck_assert_int_eq(sum.possible, strstr(sum.advice, "no frac_bits") == NULL);
		ck_assert(sum.data_frac_bits >= 0 || sum.data_frac_bits == NPUMEM_ANY);
		ck_assert(sum.weights_frac_bits >= 0 || sum.weights_frac_bits == NPUMEM_ANY);
	}
}

/* What is given up is enough by the exact bound, and one bit less is not, however it were split. */
TEST(the_least_that_is_enough)
{
	uint32_t seed = 7;
	unsigned given = 0, impossible = 0;
	for (unsigned i = 0; i < 3000; i++) {
		char words[160];
		seed = seed * 1664525 + 1013904223;
		int data = seed >> 31 ? NPUMEM_FX8 : NPUMEM_FX16;
		int64_t n = 1 + ((seed >> 4) & ((1u << (seed % 27)) - 1));
		int fd = seed >> 9 & 15, fw = seed >> 13 & 15, fb = (int)(seed >> 17) % (fd + fw + 1);
		snprintf(words, sizeof(words), "left=1,%lld:%d right=%lld,1:%d bias=:%d", (long long)n, fd,
			 (long long)n, fw, fb);
		struct npumem_sum sum = matmul(data, NPUMEM_FX8, words);
		struct numeric_load load;
		int64_t total = sum.give_up_data + sum.give_up_weights;
		numeric_bounds_load(&sum.terms, sum.give_up_data, sum.give_up_weights, &load);
		ck_assert_int_eq(numeric_bounds_fit(&load), sum.possible);
		ck_assert(sum.bound.can_overflow ? total > 0 || !sum.possible : total == 0);
		impossible += !sum.possible;
		given += sum.possible && total > 0;
		for (int64_t d = 0; d <= total - 1 && sum.possible; d++) {
			numeric_bounds_load(&sum.terms, d, total - 1 - d, &load);
			if (d < (data == NPUMEM_FX8 ? 7 : 15) && total - 1 - d < 7)
				ck_assert_msg(!numeric_bounds_fit(&load), "%s", words);
		}
		if (sum.possible)
			ck_assert_int_le(sum.bias_frac_bits, sum.data_frac_bits + sum.weights_frac_bits);
	}
	ck_assert(given > 100 && impossible > 10);
}

/* out's container against the largest and smallest sum, in every rounding. */
TEST(results_that_saturate)
{
	static const struct {
		const char *kernel, *words;
		bool saturates;
		int64_t safe;
	} cases[] = {
		/* 4 products of at most 2^14 in Q.14: 2^16, which is 4.0. */
		{"matmul", "left=1,4:7 right=4,1:7 out=:4", false, 4},
		{"matmul", "left=1,4:7 right=4,1:7 out=:5", true, 4},
		/* One product: 2^14 is 1.0, and Q.7 ends at 0.99; -16256 is -0.99. */
		{"matmul", "left=1,1:7 right=1,1:7 out=:7", true, 6},
		/* The largest is 16384 / 2^14 * 2^6 = 64; with a bias of 127 it stays. */
		{"matmul", "left=1,1:7 right=1,1:7 bias=:14 out=:6", false, 6},
		/* A wrapped sum is at most the accumulator's: 2^31 - 1 in Q.14 is 131072. */
		{"matmul", "left=1,200000:7 right=200000,1:7 out=:0", true, -1},
		{"reduce_sum", "in=1,3,1,1:1 out=:0", true, -1},
		{"reduce_sum", "in=1,1,1,1:1 out=:0", false, 1},
		{"matmul", "left=1,300000:20 right=300000,1:20 out=:15", false, 15},
		/* Ties: 127.496 and -128.5; and just past them. */
		{"reduce_sum", "in=1,65792,1,1:16 out=:0", false, 0},
		{"reduce_sum", "in=1,65792,1,1:16 out=:0 rounding=up", false, 0},
		{"reduce_sum", "in=1,65792,1,1:16 out=:0 rounding=nearest", true, -1},
		{"reduce_sum", "in=1,65793,1,1:16 out=:0", true, -1},
		{"reduce_sum", "in=1,1,1,1:3 out=:127", true, 3},
		/* An average stays within what it averages. */
		{"avepool", "in=1,1,4,4:5 out=:5 kernel=4,4", false, 5},
		{"avepool", "in=1,1,4,4:5 out=:6 kernel=4,4", true, 5},
		/* rnn_dense adds up the rounded sums. */
		{"rnn_dense", "in0=1,1:7 weights0=1,1:7 in1=1,1:7 weights1=1,1:7 out=:6", true, 5},
		{"rnn_dense", "in0=1,1:7 weights0=1,1:7 in1=1,1:7 weights1=1,1:7 out=:5", false, 5},
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct npumem_advice advice = questions_answer(cases[i].kernel, NPUMEM_FX8, 0, cases[i].words);
		ck_assert(advice.has_out);
		ck_assert_msg(advice.saturates == cases[i].saturates && advice.safe_out_frac_bits == cases[i].safe,
			      "%s %s: %d, %lld", cases[i].kernel, cases[i].words, advice.saturates,
			      (long long)advice.safe_out_frac_bits);
	}
	/* Nothing is said where a format is missing. */
	ck_assert(!questions_answer("matmul", NPUMEM_FX8, 0, "left=1,4 right=4,1:7 out=:4").has_out);
	ck_assert(!questions_answer("matmul", NPUMEM_FX8, 0, "left=1,4:7 right=4,1:7").has_out);
	ck_assert(!questions_answer("matmul", NPUMEM_FX8, 0, "left=1,4:7 right=4,1:7 out=1,1").has_out);
}

/* Every total of a small sum, rounded and clamped by hand, against `saturates` for each out format and rounding.
 */
TEST(saturation_by_counting)
{
	static const char *const roundings[] = {"convergent", "up", "nearest"};
	unsigned seen = 0;
	for (int mode = 0; mode < 3; mode++) {
		for (int n = 1; n <= 5; n++) {
			for (int out = 0; out <= 9; out++) {
				char words[96];
				bool expected = false;
				snprintf(words, sizeof(words), "in=1,%d,1,1:3 out=1,1,1,1:%d rounding=%s", n, out,
					 roundings[mode]);
				for (int total = -128 * n; total <= 127 * n; total++) {
					double exact = total * (double)(1 << out) / 8, down = exact - 0.5;
					long low = (long)(exact >= 0 ? exact : exact - 0.999), to = low;
					if (exact - (double)low > 0.5)
						to++;
					else if (exact - (double)low == 0.5)
						to += mode == 1 || (mode == 2 && down >= 0) ||
						      (mode == 0 && low % 2);
					expected |= to > 127 || to < -128;
				}
				bool is = questions_answer("reduce_sum", NPUMEM_FX8, 0, words).saturates;
				ck_assert_msg(is == expected, "%s: %d", words, is);
				seen += is;
			}
		}
	}
	ck_assert(seen > 10 && seen < 140);
	/* Three sums of 42.5 are 126 or 129. */
	for (int mode = 0; mode < 3; mode++) {
		char words[160];
		snprintf(words, sizeof(words),
			 "in0=1,85:7 weights0=85,1:8 in1=1,85:7 weights1=85,1:8 in2=1,85:7 weights2=85,1:8 out=:0 "
			 "rounding=%s",
			 roundings[mode]);
		ck_assert_int_eq(questions_answer("rnn_dense", NPUMEM_FX8, 0, words).saturates, mode > 0);
	}
}

TEST(refusals)
{
	static const struct {
		const char *kernel, *words, *part;
		int weights;
	} cases[] = {
		{"matmul", "left=1,4:128 right=4,1:7", "data: 128 frac_bits is not in 0..127", 0},
		{"matmul", "left=1,4:7 right=4,1:7 out=:128", "128 frac_bits is not in 0..127", 0},
		{"matmul", "left=1,4:7 right=4,1:7 bias=:15",
		 "the bias has 15 frac_bits, more than the 14 of data (7) and weights (7)", 0},
		{"matmul", "left=1,4:7 right=4,1:7", "weights are fx16, but must be fx8 with fx8 data",
		 NPUMEM_FX16},
		{"matmul", "left=1,4:7#5 right=4,1:7", "matmul: a sum of |weights| is for weights, not for left",
		 0},
		{"matmul", "left=1,4:7 right=4,1:7 bias=:3#5", "not for bias", 0},
		{"matmul", "left=1,4:7 right=4,1:7#513", "a sum of |weights| of 513 is not in 0..512", 0},
		{"avepool", "in=1,1,4,4 kernel=2,2", "avepool has no weights to be fx16", NPUMEM_FX16},
		{"avepool", "in=1,1,4,4 kernel=2,2", "avepool has no weights to be of that type", 99},
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct npumem_error error = {0};
		struct npumem_advice advice;
		struct questions to;
		const struct npumem_advise *question =
			questions_read(&to, cases[i].kernel, NPUMEM_FX8, cases[i].weights, cases[i].words);
		int status = npumem_advise(question, &advice, &error);
		ck_assert_msg(status == NPUMEM_INVALID && strstr(error.message, cases[i].part),
			      "\"%s\" does not say \"%s\"", error.message, cases[i].part);
	}
}

TEST(any_question)
{
	static struct npumem_numeric_answer answer;
	struct npumem_numeric question = {.x = {4, 3}, .y = {5, 7}, .n = 34};
	struct npumem_error error = {0};
	static const char *const expected[] = {"Q6.7", "Q9.10", "Q-1.-4", "Q10.3"};
	for (int kind = NPUMEM_NUMERIC_ADD; kind <= NPUMEM_NUMERIC_SUM; kind++) {
		char text[NPUMEM_FORMAT_TEXT_BYTES];
		question.kind = (enum npumem_numeric_kind)kind;
		ck_assert_int_eq(npumem_numeric(&question, &answer, NULL), 0);
		ck_assert_int_eq(answer.kind, kind);
		ck_assert_str_eq(npumem_format_text(&answer.result.format, text), expected[kind - 1]);
	}
	question.kind = NPUMEM_NUMERIC_BOUND;
	question.terms.data_dtype = NPUMEM_FX8;
	ck_assert_int_eq(npumem_numeric(&question, &answer, NULL), 0);
	ck_assert_int_eq(answer.bound.safe, 1 << 24);
	question.kind = NPUMEM_NUMERIC_ADVISE;
	ck_assert_int_eq(npumem_numeric(&question, &answer, NULL), NPUMEM_INVALID);
	question.kind = 0;
	ck_assert_int_eq(npumem_numeric(&question, &answer, &error), NPUMEM_INVALID);
	ck_assert_str_eq(error.message, "there is no numeric question 0");
}
