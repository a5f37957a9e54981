#include "tests/support/test.h"
#include "tests/unit/include/formulas/numeric/numeric_questions.h"

TEST(products_of_one_output)
{
	static const struct {
		const char *kernel, *words;
		int64_t n;
	} cases[] = {
		{"conv2d", "in=1,64,32,32 weights=64,32,5,5", 1600},
		{"conv2d", "in=1,3,7,7 weights=3,8,3,5", 45},
		/* No output sees more of the input than there is. */
		{"conv2d", "in=1,3,2,2 weights=3,8,3,3 padding=1,1,1,1", 12},
		{"conv2d", "in=1,3,1,9 weights=3,8,3,3 padding=1,1,0,0", 9},
		{"conv2d", "in=1,1,4,4 weights=1,1,3,3 padding=2,2,2,2 dilation=3,3", 1},
		{"conv2d", "in=1,1,4,4 weights=1,1,3,3 padding=3,3,3,3 dilation=3,3", 4},
		/* The only output has a window that starts in the padding. */
		{"conv2d", "in=1,1,3,3 weights=1,1,3,3 padding=1,0,1,0 stride=2,2", 4},
		{"depthwise_conv2d", "in=1,64,9,9 weights=1,64,3,3", 9},
		{"depthwise_conv2d", "in=1,64,9,9 weights=1,128,3,3", 9},
		{"group_conv2d", "in=1,64,9,9 weights=16,8,3,3", 144},
		/* Stride 2 lets 2 of 3 taps meet at one output, stride 3 one, and a gap none more. */
		{"transpose_conv2d", "in=1,8,5,5 weights=8,4,3,3", 72},
		{"transpose_conv2d", "in=1,8,5,5 weights=8,4,3,3 stride=2,2", 32},
		{"transpose_conv2d", "in=1,8,5,5 weights=8,4,3,3 stride=3,3", 8},
		{"transpose_conv2d", "in=1,8,5,5 weights=8,4,3,3 stride=4,1", 24},
		{"transpose_conv2d", "in=1,8,1,1 weights=8,4,3,3", 8},
		{"transpose_conv2d", "in=1,8,5,5 weights=2,4,3,3 groups=4 stride=2,2", 8},
		{"transpose_conv2d", "in=1,1,2,1 weights=1,1,3,1 stride=2,1 padding=2,2,0,0 output_padding=0,9",
		 2},
		{"fully_connected", "in=5,4,3,2 weights=24,10,1,1", 24},
		{"fully_connected", "in=5,4,3,2 weights=24,10", 24},
		{"matmul", "left=7,100 right=100,3", 100},
		{"avepool", "in=1,8,10,10 kernel=2,3", 6},
		{"avepool", "in=1,8,2,2 kernel=3,3 padding=1,1,1,1", 4},
		{"reduce_sum", "in=2,3,4,5 axes=c,w", 15},
		{"reduce_sum", "in=2,3,4,5 axes=w,c out=2,1,4,1", 15},
		{"reduce_sum", "in=2,3,4,5 axes=n", 2},
		{"reduce_sum", "in=2,3,4,5", 120},
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct npumem_advice advice = questions_answer(cases[i].kernel, NPUMEM_FX16, 0, cases[i].words);
		ck_assert_uint_eq(advice.n_sums, 1);
		ck_assert_msg(advice.sums[0].terms.n == cases[i].n, "%s %s: %lld", cases[i].kernel, cases[i].words,
			      (long long)advice.sums[0].terms.n);
	}
}

TEST(kernels_with_several_sums)
{
	struct npumem_advice advice =
		questions_answer("rnn_dense", NPUMEM_FX16, NPUMEM_FX8,
				 "in0=1,100,1,1:7 weights0=100,32:7 in1=1,2,5,1:7 weights1=10,32:7 bias=:14");
	ck_assert_uint_eq(advice.n_sums, 2);
	ck_assert_int_eq(advice.sums[0].terms.n, 100);
	ck_assert_str_eq(advice.sums[0].weights, "weights0");
	ck_assert_str_eq(advice.sums[0].bias, "bias");
	ck_assert_int_eq(advice.sums[0].terms.weights_dtype, NPUMEM_FX8);
	ck_assert_int_eq(advice.sums[1].terms.n, 10);
	ck_assert_str_eq(advice.sums[1].data, "in1");
	ck_assert_str_eq(advice.sums[1].bias, "");
	ck_assert(!advice.sums[1].terms.has_bias);
	static const char *const cells[] = {"lstm_cell", "gru_cell"};
	static const char *const words[] = {
		"in=9,700,1,1 weights_in=4,30,1,700 prev_out=1,30 weights_out=4,30,1,30 bias=4,30 cell_in=1,30",
		"in=9,700,1,1 weights_in=3,30,1,700 prev_out=1,30 weights_out=3,30,1,30 bias=3,30 out=9,30:7"};
	for (unsigned i = 0; i < 2; i++) {
		advice = questions_answer(cells[i], NPUMEM_FX16, 0, words[i]);
		ck_assert_uint_eq(advice.n_sums, 2);
		ck_assert_int_eq(advice.sums[0].terms.n, 700);
		ck_assert_int_eq(advice.sums[0].additions, 701);
		ck_assert_str_eq(advice.sums[0].weights, "weights_in");
		ck_assert_int_eq(advice.sums[1].terms.n, 30);
		ck_assert_str_eq(advice.sums[1].data, "prev_out");
		ck_assert_str_eq(advice.sums[1].bias, "");
		ck_assert(advice.can_overflow && advice.sums[0].bound.can_overflow);
		ck_assert(!advice.sums[1].bound.can_overflow);
		ck_assert(!advice.has_out); /* gates round into a format of their own */
	}
}

TEST(refusals)
{
	static const struct {
		const char *kernel, *words, *part;
	} cases[] = {
		{"conv3d", "", "\"conv3d\" is not a kernel that adds up: those are conv2d, depthwise_conv2d,"},
		{"maxpool", "", "rnn_dense, lstm_cell, gru_cell"},
		{NULL, "", "\"\" is not a kernel"},
		{"conv2d", "weights=3,8,3,3", "conv2d: the shape of in is missing"},
		{"conv2d", "in=1,3,7,7 weights=:7", "conv2d: the shape of weights is missing"},
		{"conv2d", "in=1,3,7,7 weights=4,8,3,3", "conv2d: n of weights is 4, but c of in is 3"},
		{"conv2d", "in=1,3,7,7 weights=3,8,3,0", "conv2d: w of weights 0 is not in 1..2147483647"},
		{"conv2d", "in=1,3,-7,7 weights=3,8,3,3", "h of in -7"},
		{"conv2d", "in=1,3,7,2147483648 weights=3,8,3,3", "w of in 2147483648"},
		{"conv2d", "in=1,3,7,7 left=1,2,3,4",
		 "conv2d has no tensor \"left\"; it has: in weights bias out"},
		{"conv2d", "in=1,3,7,7 in0=1,2,3,4", "\"in0\""},
		{"conv2d", "in=1,3,7,7 in=1,3,7,7", "conv2d: in is given twice"},
		{"conv2d", "in=1,3,7,7 weights=3,8,8,3",
		 "the window's h is 8, more than the 7 of in with its padding"},
		{"conv2d", "in=1,3,7,7 weights=3,8,3,3 dilation=1,4", "the window's w is 9, more than the 7"},
		{"conv2d", "in=1,3,7,7 weights=3,8,3,3 padding=3,0,0,0", "conv2d: padding top 3 is not in 0..2"},
		{"conv2d", "in=1,3,7,7 weights=3,8,3,3 padding=0,0,0,-1", "padding right -1"},
		{"conv2d", "in=1,3,7,7 weights=3,8,3,3 stride=0,1", "conv2d: stride h 0 is not in 1..2147483647"},
		{"conv2d", "in=1,3,7,7 weights=3,8,3,3 dilation=1,0", "dilation w 0"},
		{"conv2d", "in=1,3,7,7 weights=3,8,3,3 kernel=3,3",
		 "conv2d has no parameter kernel; it has: stride padding dilation relu rounding"},
		{"conv2d", "in=1,3,7,7 weights=3,8,3,3 stride=1,1 stride=1,1", "conv2d: stride is given twice"},
		{"conv2d", "in=1,2000000,2000,2000 weights=2000000,8,2000,2000",
		 "conv2d: an output would add up 8000000000000 products, more than 4294967296"},
		{"conv2d", "in=1,2147483647,2147483647,2147483647 weights=2147483647,1,2147483647,2147483647",
		 "9223372036854775807 products"},
		{"depthwise_conv2d", "in=1,3,7,7 weights=3,3,3,3",
		 "n of weights is 3, but that of depthwise ones is 1"},
		{"depthwise_conv2d", "in=1,3,7,7 weights=1,8,3,3",
		 "c of weights, 8, is not a multiple of c of in, 3"},
		{"group_conv2d", "in=1,64,7,7 weights=24,8,3,3",
		 "n of weights times groups is 48, but c of in is 64"},
		{"group_conv2d", "in=1,64,7,7 weights=128,8,3,3",
		 "n of weights times groups is 128, but c of in is 64"},
		{"group_conv2d", "in=1,64,7,7 weights=16,6,3,3",
		 "c of weights, 6, is not a multiple of the 4 groups"},
		{"transpose_conv2d", "in=1,8,1,5 weights=8,4,2,3 padding=1,1,0,0",
		 "the padding leaves 0 of out's h"},
		{"transpose_conv2d", "in=1,8,1,5 weights=8,4,2,3 dilation=1,1", "no parameter dilation"},
		{"transpose_conv2d", "in=1,8,1,5 weights=7,4,2,3", "n of weights times groups is 7"},
		{"transpose_conv2d", "in=1,8,1,5 weights=8,4,2,3 output_padding=0,-1",
		 "output_padding w -1 is not in 0..2147483647"},
		{"fully_connected", "in=5,4,3,2 weights=23,10", "n of weights is 23, but c * h * w of in is 24"},
		{"matmul", "left=7,100 right=99,3", "n of right is 99, but c * h * w of left is 100"},
		{"matmul", "left=7,100", "matmul: the shape of right is missing"},
		{"avepool", "in=1,8,10,10", "avepool: kernel h 0 is not in 1..2147483647"},
		{"reduce_sum", "out=2,3,4,5", "reduce_sum: the shape of in is missing"},
		{"reduce_sum", "in=2,3,4,5 axes=w out=2,2,4,1", "c of out is 2, but that of in along axes is 3"},
		{"reduce_sum", "in=2,3,4,5 out=2,1,1,1", "n of out is 2, but that of in along axes is 1"},
		{"lstm_cell", "in=1,7 rules=mli1_1", "lstm_cell: only rules=mli2_0 is planned"},
		{"rnn_dense", "in1=1,2,1,1 weights1=2,3", "the shape of in0 is missing"},
		{"rnn_dense", "in0=1,2,1,1 weights0=2,3 in1=1,2,1,1", "the shape of weights1 is missing"},
		{"rnn_dense", "in=1,2,1,1", "rnn_dense has no tensor \"in\""},
		{"rnn_dense", "in0x=1,2,1,1", "rnn_dense has no tensor \"in0x\""},
		{"lstm_cell", "in=1,7,1,1 weights_in=3,5,1,7 prev_out=1,5 weights_out=4,5,1,5",
		 "n of weights_in is 3, but the cell's number of gates is 4"},
		{"gru_cell", "in=1,7,1,1 weights_in=3,5,1,7 prev_out=1,5 weights_out=3,5,1,6",
		 "w of weights_out is 6, but c * h * w of prev_out is 5"},
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct npumem_error error = {0};
		struct npumem_advice advice;
		struct questions to;
		int status = npumem_advise(questions_read(&to, cases[i].kernel, NPUMEM_FX16, 0, cases[i].words),
					   &advice, &error);
		ck_assert_msg(status == NPUMEM_INVALID && strstr(error.message, cases[i].part),
			      "%s %s: \"%s\" does not say \"%s\"", cases[i].kernel, cases[i].words, error.message,
			      cases[i].part);
	}
}

TEST(what_only_a_program_can_get_wrong)
{
	static const struct npumem_numeric_operand operands[] = {
		{"in", {1, 1, 1, 1}, 0, 0}, {"weights", {1, 1, 1, 1}, 0, 0}, {NULL, {1, 1, 1, 1}, 0, 0}};
	struct npumem_param params[] = {
		{99, 1, {1}}, {NPUMEM_PARAM_STRIDE, 1, {1}}, {NPUMEM_PARAM_ROUNDING, 1, {4}}};
	struct npumem_advise question = {
		.kernel = "conv2d", .data_dtype = NPUMEM_FX8, .operands = operands, .n_operands = 3};
	static const char *const parts[] = {"there is no parameter 99", "conv2d: stride has 1 values, not 2 to 2",
					    "conv2d: rounding 4 is not in 1..3"};
	struct npumem_error error = {0};
	struct npumem_advice advice;
	ck_assert_int_eq(npumem_advise(&question, &advice, &error), NPUMEM_INVALID);
	ck_assert_str_eq(error.message, "conv2d has no tensor \"\"; it has: in weights bias out");
	question.n_operands = 2;
	question.n_params = 1;
	for (unsigned i = 0; i < 3; i++) {
		npumem_error_clear(&error);
		question.params = &params[i];
		ck_assert_int_eq(npumem_advise(&question, &advice, &error), NPUMEM_INVALID);
		ck_assert_str_eq(error.message, parts[i]);
	}
	npumem_error_clear(&error);
	question.n_params = NPUMEM_PARAMS_MAX + 1;
	ck_assert_int_eq(npumem_advise(&question, &advice, &error), NPUMEM_INVALID);
	ck_assert_str_eq(error.message, "41 parameters are more than the 40 of a call");
	npumem_error_clear(&error);
	question.n_operands = NPUMEM_OPERANDS_MAX + 1;
	ck_assert_int_eq(npumem_advise(&question, &advice, &error), NPUMEM_INVALID);
	ck_assert_str_eq(error.message, "41 operands are more than the 40 of a call");
}

TEST(as_many_inputs_as_a_call_can_have)
{
	char words[600] = "";
	for (unsigned i = 0; i < NPUMEM_SUMS_MAX; i++)
		snprintf(words + strlen(words), sizeof(words) - strlen(words), "in%u=1,1 weights%u=1,1 ", i, i);
	struct npumem_advice advice = questions_answer("rnn_dense", NPUMEM_FX8, 0, words);
	ck_assert_uint_eq(advice.n_sums, NPUMEM_SUMS_MAX);
	ck_assert_str_eq(advice.sums[NPUMEM_SUMS_MAX - 1].weights, "weights19");
}
