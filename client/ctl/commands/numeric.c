/* numeric: formats, accumulators and advice. The formulas answer here; with --remote the daemon does, by the same
 * ones. */
#include "client/ctl/command.h"

#include <inttypes.h>
#include <string.h>

#include "client/ctl/core/kernels/kernels.h"
#include "client/ctl/core/memory.h"
#include "client/ctl/core/output/output.h"
#include "client/ctl/ctl.h"

static const struct option numeric_options[] = {
	QUESTION_OPTIONS,
	{"--remote", NULL, "asks the daemon", false},
	{"--rounding", "R", "advise, formats: how files become fixed point: convergent, up, nearest", false},
	{NULL, NULL, NULL, false},
};

/* ---- formats ---- */

static json_t *format_object(const char *operation, const struct npumem_numeric *question,
			     const struct npumem_format_result *result)
{
	char x[NPUMEM_FORMAT_TEXT_BYTES], y[NPUMEM_FORMAT_TEXT_BYTES], format[NPUMEM_FORMAT_TEXT_BYTES],
		every[NPUMEM_FORMAT_TEXT_BYTES];
	bool sum = question->kind == NPUMEM_NUMERIC_SUM;
	return json_pack("{s:s, s:s, s:o, s:o, s:s, s:I, s:I, s:I, s:I, s:{s:I, s:I}, s:s, s:b}", "operation",
			 operation, "x", npumem_format_text(&question->x, x), "y",
			 sum ? json_null() : json_string(npumem_format_text(&question->y, y)), "n",
			 sum ? json_integer(question->n) : json_null(), "format",
			 npumem_format_text(&result->format, format), "integer_bits",
			 (json_int_t)result->format.integer_bits, "frac_bits",
			 (json_int_t)result->format.frac_bits, "significant_bits",
			 (json_int_t)result->significant_bits, "extra_bits", (json_int_t)result->extra_bits,
			 "shift", "x", (json_int_t)result->shift_x, "y", (json_int_t)result->shift_y, "every",
			 npumem_format_text(&result->every, every), "precision_lost", result->precision_lost);
}

static const char *sign_of(const char *operation)
{
	return !strcmp(operation, "add")   ? "+"
	       : !strcmp(operation, "sub") ? "-"
	       : !strcmp(operation, "mul") ? "*"
					   : "/";
}

static void format_text(const char *operation, const struct npumem_numeric *question,
			const struct npumem_format_result *result)
{
	char x[NPUMEM_FORMAT_TEXT_BYTES], y[NPUMEM_FORMAT_TEXT_BYTES], format[NPUMEM_FORMAT_TEXT_BYTES];
	npumem_format_text(&question->x, x);
	npumem_format_text(&question->y, y);
	npumem_format_text(&result->format, format);
	if (question->kind == NPUMEM_NUMERIC_SUM)
		present_text(stdout, "the sum of %" PRId64 " values of %s is %s", question->n, x, format);
	else
		present_text(stdout, "%s %s %s is %s", x, sign_of(operation), y, format);
	present_line(stdout, "bits", "%" PRId64 " beside the sign%s", result->significant_bits,
		     result->precision_lost ? ": all precision is lost, so convert x to more bits first" : "");
	if (question->kind == NPUMEM_NUMERIC_ADD || question->kind == NPUMEM_NUMERIC_SUM)
		present_line(stdout, "extra bits", "%" PRId64, result->extra_bits);
	if (result->shift_x || result->shift_y)
		present_line(stdout, "align", "shift %s left by %" PRId64, result->shift_x ? x : y,
			     result->shift_x + result->shift_y);
	if (question->kind == NPUMEM_NUMERIC_MUL)
		present_line(stdout, "every product", "%s, as the minimum times the minimum is one step past %s",
			     npumem_format_text(&result->every, x), format);
	if (question->kind == NPUMEM_NUMERIC_DIV)
		present_line(stdout, "every quotient", "%s, as the divisor may be one step of %s",
			     npumem_format_text(&result->every, x), y);
}

/* ---- accumulators ---- */

static json_t *bound_object(const struct npumem_bound *bound)
{
	return json_pack("{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:s}", "accumulator_bits",
			 bound->accumulator_bits, "low", (json_int_t)bound->low, "high", (json_int_t)bound->high,
			 "safe", (json_int_t)bound->safe, "safe_weights_sum", (json_int_t)bound->safe_weights_sum,
			 "least", (json_int_t)bound->least, "most", (json_int_t)bound->most, "can_overflow",
			 bound->can_overflow, "breaks", bound->breaks);
}

static void bound_lines(const struct npumem_terms *terms, const struct npumem_bound *bound)
{
	const char *what = terms->weights_dtype ? "products" : "values";
	if (terms->n || terms->weights_sum)
		present_line(stdout, "can overflow", "%s", bound->can_overflow ? "yes" : "no");
	if (bound->safe < 0)
		present_line(stdout, "safe", "not even 0 %s", what);
	else
		present_line(stdout, "safe", "%" PRId64 " %s, whatever they are", bound->safe, what);
	if (bound->safe_weights_sum >= 0)
		present_line(stdout, "", "weights whose absolute values add up to %" PRId64 ", however many",
			     bound->safe_weights_sum);
	present_line(stdout, "breaks", "%s", bound->breaks);
}

static void bound_text(const struct npumem_terms *terms, const struct npumem_bound *bound)
{
	const char *data = npumem_dtype_name(terms->data_dtype),
		   *weights = npumem_dtype_name(terms->weights_dtype);
	present_text(stdout, "%s%s%s%s%s%s, %d bits: %" PRId64 " to %" PRId64,
		     weights ? "products of " : "sums of ", data, weights ? " data and " : "",
		     weights ? weights : "", weights ? " weights" : "", terms->has_bias ? " with a bias" : "",
		     bound->accumulator_bits, bound->low, bound->high);
	if (terms->n || terms->weights_sum)
		present_line(stdout, "total", "%" PRId64 " to %" PRId64, bound->least, bound->most);
	bound_lines(terms, bound);
}

/* ---- advice ---- */

static json_t *sum_object(const struct npumem_sum *sum)
{
	return json_pack(
		"{s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:b, s:{s:I, s:I}, s:{s:o, s:o, s:o}, s:s}", "data",
		jsons_text(sum->data), "weights", jsons_text(sum->weights), "bias", jsons_text(sum->bias), "n",
		(json_int_t)sum->terms.n, "additions", (json_int_t)sum->additions, "extra_bits",
		(json_int_t)sum->extra_bits, "available_bits", (json_int_t)sum->available_bits, "over_bits",
		(json_int_t)sum->over_bits, "bound", bound_object(&sum->bound), "possible", sum->possible,
		"give_up", "data", (json_int_t)sum->give_up_data, "weights", (json_int_t)sum->give_up_weights,
		"frac_bits", "data", jsons_integer(sum->data_frac_bits), "weights",
		jsons_integer(sum->weights_frac_bits), "bias", jsons_integer(sum->bias_frac_bits), "advice",
		sum->advice);
}

static json_t *advice_object(const char *kernel, const struct npumem_advice *advice, const struct measure *measure)
{
	json_t *sums = json_array();
	for (unsigned i = 0; i < advice->n_sums; i++) {
		jsons_append(&sums, sum_object(&advice->sums[i]));
	}
	json_t *out =
		advice->has_out
			? json_pack("{s:I, s:b, s:o}", "frac_bits", (json_int_t)advice->out_frac_bits, "saturates",
				    advice->saturates, "safe_frac_bits", jsons_integer(advice->safe_out_frac_bits))
			: json_null();
	return json_pack("{s:s, s:b, s:o, s:o, s:o*}", "kernel", kernel, "can_overflow", advice->can_overflow,
			 "sums", sums, "out", out, "data", measure->n ? measure_array(measure) : NULL);
}

static void sum_text(const char *kernel, const struct npumem_sum *sum)
{
	present_text(stdout, "%s: an output adds up %" PRId64 " %s of %s%s%s%s%s, in %d bits", kernel,
		     sum->terms.n, sum->terms.weights_dtype ? "products" : "values", sum->data,
		     *sum->weights ? " and " : "", sum->weights, *sum->bias ? ", and " : "", sum->bias,
		     sum->bound.accumulator_bits);
	present_line(stdout, "estimate",
		     "%" PRId64 " additions take %" PRId64 " extra bits, %" PRId64 " are there, %" PRId64 " over",
		     sum->additions, sum->extra_bits, sum->available_bits, sum->over_bits);
	bound_lines(&sum->terms, &sum->bound);
	present_line(stdout, "advice", "%s", sum->advice);
}

static void advice_text(const char *kernel, const struct npumem_advice *advice)
{
	for (unsigned i = 0; i < advice->n_sums; i++)
		sum_text(kernel, &advice->sums[i]);
	if (!advice->has_out)
		return;
	if (!advice->saturates)
		present_line(stdout, "out", "Q.%" PRId64 " holds the extremes", advice->out_frac_bits);
	else if (advice->safe_out_frac_bits == NPUMEM_ANY)
		present_line(stdout, "out", "Q.%" PRId64 " saturates at the extremes, as would Q.0",
			     advice->out_frac_bits);
	else
		present_line(stdout, "out", "Q.%" PRId64 " saturates at the extremes; Q.%" PRId64 " holds them",
			     advice->out_frac_bits, advice->safe_out_frac_bits);
}

/* ---- the command ---- */

static int numeric_print(struct ctl *ctl, const char *operation, const struct npumem_numeric *question,
			 const struct npumem_numeric_answer *answer, const struct measure *measure)
{
	if (question->kind == NPUMEM_NUMERIC_BOUND && ctl->json)
		return ctl_print(ctl, bound_object(&answer->bound));
	if (question->kind == NPUMEM_NUMERIC_ADVISE && ctl->json)
		return ctl_print(ctl, advice_object(question->advise.kernel, &answer->advice, measure));
	if (ctl->json)
		return ctl_print(ctl, format_object(operation, question, &answer->result));
	if (question->kind == NPUMEM_NUMERIC_BOUND)
		bound_text(&question->terms, &answer->bound);
	else if (question->kind == NPUMEM_NUMERIC_ADVISE)
		advice_text(question->advise.kernel, &answer->advice);
	else
		format_text(operation, question, &answer->result);
	measure_print(measure);
	return CTL_OK;
}

static int numeric_ask(struct ctl *ctl, const struct args *args, struct measure *measure)
{
	struct question question;
	struct npumem_numeric_answer own;
	const struct npumem_numeric_answer *answer = &own;
	bool remote = args_has(args, "--remote");
	if (question_parse(args, &question, &ctl->error))
		return CTL_USAGE;
	int code = remote ? ctl_connect(ctl) : CTL_OK;
	if (code)
		return code;
	int status = remote ? npumem_numeric_remote(ctl->npumem, &question.numeric, &answer, &ctl->error)
			    : npumem_numeric(&question.numeric, &own, &ctl->error);
	if (status)
		return CTL_FAILED;
	measure_ask(measure, &question);
	return numeric_print(ctl, args->words[0], &question.numeric, answer, measure);
}

/* What fits a file or a tensor by itself. */
static int numeric_formats(struct ctl *ctl, const struct args *args, struct measure *measure)
{
	if (args->n_words != 2)
		return ctl_usage(ctl, "formats takes a file or a tensor, and --dtype");
	int code = measure_one(ctl, args, measure);
	if (code)
		return code;
	if (ctl->json)
		return ctl_print(ctl, json_pack("{s:o}", "data", measure_array(measure)));
	measure_print(measure);
	return CTL_OK;
}

/* advise: with what the files and tensors among the words come to. */
static int numeric_advise(struct ctl *ctl, const struct args *args, struct measure *measure)
{
	struct args own = *args;
	own.words = memory_new(args->n_words, sizeof(*own.words));
	int code = measure_words(ctl, args, measure, own.words);
	return code ? code : numeric_ask(ctl, &own, measure);
}

static int numeric_run(struct ctl *ctl, const struct args *args)
{
	struct measure *measure = memory_new(1, sizeof(*measure));
	if (!strcmp(args->words[0], "formats"))
		return numeric_formats(ctl, args, measure);
	if (!strcmp(args->words[0], "advise"))
		return numeric_advise(ctl, args, measure);
	return args_has(args, "--rounding") ? ctl_usage(ctl, "--rounding is not for %.40s", args->words[0])
					    : numeric_ask(ctl, args, measure);
}

const struct command numeric_command = {
	.options = numeric_options,
	.least = 1,
	.most = COMMAND_WORDS_ANY,
	.run = numeric_run,
	.notes = "questions:\n"
		 "  mul Q4.3 Q5.7           the format of a product; add, sub and div likewise\n"
		 "  sum Q3.4 --n 34         the format of a sum, and its extra bits\n"
		 "  products fx16           how many products cannot overflow, and what breaks one more\n"
		 "  sums fx8                the same of values that are only added up\n"
		 "  advise KERNEL ...       whether it can overflow, and which frac_bits to give up\n"
		 "  formats FILE|TENSOR     what each frac_bits of --dtype clips, and how far it is off\n"
		 "\n"
		 "  npumemctl numeric advise conv2d --dtype fx16 in=1,64,32,32:Q.11 weights=64,32,5,5:Q.15 \\\n"
		 "            bias=Q.20 out=Q.8 stride=1,1 padding=2,2,2,2\n"
		 "  npumemctl numeric products fx16w8 --in-frac 11 --weights-frac 7 --bias-frac 10\n"
		 "\n"
		 "Qm.n has m integer bits beside the sign and n fractional bits; Q.n leaves m to the type.\n"
		 "advise takes what run takes, with shapes and formats in place of names: the shape (a\n"
		 "matrix is ROWS,COLS), Q.n, and for weights sum=W, the largest sum of |weights| of one output\n"
		 "as integers, each after a colon: weights=64,32,5,5:Q.15:sum=90000.\n"
		 "A file or a tensor in place of a shape is measured: each frac_bits that comes into question, "
		 "and\n"
		 "whether the sums can overflow with these weights: in=x.npy weights=w.npy:Q.6:perm=1,0,2,3.\n"
		 "Kernels: conv2d, depthwise_conv2d, group_conv2d, transpose_conv2d, fully_connected, matmul,\n"
		 "avepool, reduce_sum, rnn_dense, lstm_cell, gru_cell.",
};
