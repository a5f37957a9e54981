/* From files and tensors to numeric questions. Invariant: the values of list[0..n) are real numbers without a NaN.
 */
#include "client/ctl/ctl.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/ctl/core/arrays/stream.h"
#include "client/ctl/core/kernels/kernels.h"
#include "client/ctl/core/memory.h"
#include "client/ctl/core/output/output.h"
#include "client/ctl/core/words/words.h"

enum { MEASURE_BELOW = 2, MEASURE_ABOVE = 4 };

/* ---- sources ---- */

/* What a word says: SOURCE[:Q.F][:perm=P]. */
struct source {
	char text[MEASURE_TEXT_BYTES];
	const char *perm;
	int64_t frac_bits;
};

static int source_parse(struct ctl *ctl, const char *word, struct source *source)
{
	*source = (struct source){.frac_bits = NPUMEM_ANY};
	if (strlen(word) >= sizeof(source->text))
		return ctl_usage(ctl, "\"%.60s\" is too long", word);
	strcpy(source->text, word);
	for (char *part; (part = strrchr(source->text, ':')); *part = 0) {
		if (!strncmp(part + 1, "perm=", 5))
			source->perm = part + 6;
		else if (strncmp(part + 1, "Q.", 2))
			break;
		else if (numbers_count(word, part + 3, &source->frac_bits, &ctl->error))
			return CTL_USAGE;
	}
	return CTL_OK;
}

/* Words that are no shape, no format and no sum are a file's or a tensor's. */
static bool is_source(const char *text)
{
	return values_is_file(text) ||
	       (!isdigit((unsigned char)*text) && strncmp(text, "Q", 1) && strncmp(text, "sum=", 4));
}

static int read_tensor(struct ctl *ctl, const struct source *source, struct measured *one)
{
	const struct npumem_tensor *tensor;
	const struct npumem_done *done;
	struct array array;
	int code = ctl_open(ctl, source->text, &tensor);
	if (code)
		return code;
	if (source->perm)
		return ctl_usage(ctl, "perm= is for files; %s is a tensor", source->text);
	if (array_of(tensor, &array, &ctl->error))
		return CTL_FAILED;
	const struct npumem_place *place = &tensor->place;
	void *data = memory_data(array.bytes, 1);
	one->values = (struct values){
		.n_dims = array.n_dims, .n = array.n, .data = memory_data(array.n, sizeof(double))};
	memcpy(one->values.shape, array.shape, sizeof(array.shape));
	if (!data || !one->values.data)
		code = ctl_fail(ctl, "no memory for %zu elements", array.n);
	else if (npumem_read(ctl->npumem, tensor, data, array.bytes, &done, &ctl->error))
		code = CTL_FAILED;
	else
		values_decode(data, place->dtype, place->frac_bits, &one->values);
	one->frac_bits = npumem_dtype_is_fixed(place->dtype) ? place->frac_bits : NPUMEM_ANY;
	return code;
}

/* Integers of a given format are what they mean. */
static int to_real(struct ctl *ctl, const struct source *source, struct values *values)
{
	if (values->is_real)
		return CTL_OK;
	if (source->frac_bits == NPUMEM_ANY)
		return ctl_invalid(ctl,
				   "%s has integers, which have no format; append :Q.F where they are fixed point",
				   source->text);
	for (size_t i = 0; i < values->n; i++)
		values->data[i] = ldexp(values->data[i], -(int)source->frac_bits);
	return CTL_OK;
}

static int read_source(struct ctl *ctl, const struct source *source, struct measured *one)
{
	int code = CTL_OK;
	one->frac_bits = NPUMEM_ANY;
	if (source->frac_bits > NPUMEM_FRAC_BITS_MAX)
		return ctl_usage(ctl, "%s: Q.%" PRId64 " is past Q.%d", source->text, source->frac_bits,
				 NPUMEM_FRAC_BITS_MAX);
	if (!values_is_file(source->text))
		code = read_tensor(ctl, source, one);
	else if (values_read(source->text, source->perm, &one->values, &ctl->error))
		code = CTL_FAILED;
	if (!code)
		code = to_real(ctl, source, &one->values);
	if (source->frac_bits != NPUMEM_ANY)
		one->frac_bits = source->frac_bits;
	return code;
}

/* ---- candidates ---- */

static int judge(struct ctl *ctl, int rounding, struct measured *one)
{
	struct npumem_error why = {.status = 0};
	int64_t most;
	if (formats_auto(&one->values, one->dtype, rounding, &most, &why)) {
		if (strstr(why.message, "NaN")) {
			ctl->error = why;
			return CTL_FAILED;
		}
		most = 0;
	}
	if (one->frac_bits == NPUMEM_ANY)
		one->frac_bits = most;
	int64_t from = most > MEASURE_BELOW ? most - MEASURE_BELOW : 0, to = most + MEASURE_ABOVE;
	to = to < NPUMEM_FRAC_BITS_MAX ? to : NPUMEM_FRAC_BITS_MAX;
	if (one->frac_bits < from)
		formats_judge(&one->values, one->dtype, one->frac_bits, rounding, &one->candidates[one->n++]);
	for (int64_t f = from; f <= to; f++)
		formats_judge(&one->values, one->dtype, f, rounding, &one->candidates[one->n++]);
	if (one->frac_bits > to)
		formats_judge(&one->values, one->dtype, one->frac_bits, rounding, &one->candidates[one->n++]);
	return CTL_OK;
}

static int64_t weights_sum(const struct measure *measure, const struct measured *one, int64_t frac_bits)
{
	return one->is_weights
		       ? formats_weights_sum(&one->values, one->dtype, frac_bits, measure->rounding, one->each)
		       : 0;
}

static int dtype_of(struct ctl *ctl, const struct args *args, bool weights, int *dtype)
{
	const char *text = args_value(args, "--dtype");
	if (!text)
		return ctl_usage(ctl, "%s needs --dtype", args->words[0]);
	*dtype = strcmp(text, "fx16w8") ? npumem_dtype_parse(text) : weights ? NPUMEM_FX8 : NPUMEM_FX16;
	return npumem_dtype_is_fixed(*dtype) ? CTL_OK
					     : ctl_usage(ctl, "\"%.40s\" is not fx8, fx16 or fx16w8", text);
}

static int rounding_of(struct ctl *ctl, const struct args *args, struct measure *measure)
{
	measure->rounding = NPUMEM_CONVERGENT;
	return spec_name(args, "--rounding", "rounding", npumem_rounding_parse, npumem_rounding_name,
			 &measure->rounding, &ctl->error)
		       ? CTL_USAGE
		       : CTL_OK;
}

/* ---- words ---- */

/* The kernel's word with the shape, the format and the sum in place of the source. */
static int write_word(struct ctl *ctl, struct measure *measure, const struct measured *one, char *text)
{
	struct npumem_dims s;
	char sum[32] = "", word[MEASURE_TEXT_BYTES];
	if (values_shape(&one->values, &s, &ctl->error))
		return CTL_FAILED;
	int64_t total = weights_sum(measure, one, one->frac_bits);
	if (total)
		snprintf(sum, sizeof(sum), ":sum=%" PRId64, total);
	snprintf(word, sizeof(word), "%s=%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ":Q.%" PRId64 "%s",
		 one->role, s.n, s.c, s.h, s.w, one->frac_bits, sum);
	memcpy(text, word, sizeof(word));
	return CTL_OK;
}

static int measure_word(struct ctl *ctl, const struct args *args, struct measure *measure, const char *key,
			const struct source *source)
{
	const struct npumem_kernel_row *row = npumem_kernel_by_name(args->words[1]);
	struct measured *one = &measure->list[measure->n++];
	char shape[DESCRIBE_SHAPE_BYTES], family[NPUMEM_FIELD_KEY_BYTES];
	memcpy(one->role, key, strlen(key) + 1);
	memcpy(one->source, source->text, sizeof(one->source));
	one->is_weights = !strncmp(key, "weights", 7) || !strcmp(key, "right");
	snprintf(family, sizeof(family), "%.*s", (int)strcspn(key, "0123456789"), key);
	one->each = row && isdigit((unsigned char)describe_shape(row, family, shape)[1]);
	int code = dtype_of(ctl, args, one->is_weights || !strcmp(key, "bias"), &one->dtype);
	if (!code)
		code = read_source(ctl, source, one);
	if (!code)
		code = judge(ctl, measure->rounding, one);
	return code ? code : write_word(ctl, measure, one, measure->texts[measure->n - 1]);
}

int measure_words(struct ctl *ctl, const struct args *args, struct measure *measure, const char **words)
{
	int code = rounding_of(ctl, args, measure);
	for (unsigned i = 0; i < args->n_words && !code; i++) {
		const char *word = words[i] = args->words[i], *value = strchr(word, '=');
		char key[NPUMEM_FIELD_KEY_BYTES];
		size_t length = value ? (size_t)(value - word) : 0;
		struct source source;
		if (i < 2 || !length || length >= sizeof(key) || measure->n == NPUMEM_OPERANDS_MAX)
			continue;
		snprintf(key, sizeof(key), "%.*s", (int)length, word);
		if (npumem_param_by_name(key) || !value[1] || !is_source(value + 1))
			continue;
		code = source_parse(ctl, value + 1, &source);
		if (!code)
			code = measure_word(ctl, args, measure, key, &source);
		words[i] = measure->texts[measure->n ? measure->n - 1 : 0];
	}
	return code;
}

int measure_one(struct ctl *ctl, const struct args *args, struct measure *measure)
{
	struct measured *one = &measure->list[0];
	struct source source;
	int code = rounding_of(ctl, args, measure);
	if (!code)
		code = dtype_of(ctl, args, false, &one->dtype);
	if (!code)
		code = source_parse(ctl, args->words[1], &source);
	if (code)
		return code;
	measure->n = 1;
	memcpy(one->source, source.text, sizeof(one->source));
	code = read_source(ctl, &source, one);
	return code ? code : judge(ctl, measure->rounding, one);
}

/* ---- sums ---- */

void measure_ask(struct measure *measure, struct question *question)
{
	struct npumem_numeric_answer answer;
	for (unsigned i = 0; i < measure->n; i++) {
		struct measured *one = &measure->list[i];
		struct npumem_numeric_operand *operand = question->operands;
		unsigned n = question->numeric.advise.n_operands;
		while (n && strcmp(operand->role, one->role)) {
			operand++;
			n--;
		}
		if (!n)
			continue;
		const struct npumem_numeric_operand kept = *operand;
		for (unsigned k = 0; k < one->n; k++) {
			operand->frac_bits = one->candidates[k].frac_bits;
			operand->weights_sum = weights_sum(measure, one, operand->frac_bits);
			one->sums[k] = npumem_numeric(&question->numeric, &answer, NULL) ? "not possible"
				       : answer.advice.can_overflow			 ? "can overflow"
											 : "cannot overflow";
		}
		*operand = kept;
	}
}

/* ---- results ---- */

static json_t *candidates_array(const struct measured *one)
{
	json_t *array = json_array();
	for (unsigned k = 0; k < one->n; k++) {
		const struct formats_candidate *c = &one->candidates[k];
		json_array_append_new(array, json_pack("{s:I, s:I, s:f, s:o, s:s*}", "frac_bits",
						       (json_int_t)c->frac_bits, "clipped", (json_int_t)c->clipped,
						       "largest_error", c->largest, "snr_db", jsons_real(c->snr),
						       "sums", one->sums[k]));
	}
	return array;
}

json_t *measure_array(const struct measure *measure)
{
	json_t *array = json_array();
	for (unsigned i = 0; i < measure->n; i++) {
		const struct measured *one = &measure->list[i];
		json_array_append_new(
			array, json_pack("{s:s*, s:s, s:s, s:I, s:I, s:o}", "role", *one->role ? one->role : NULL,
					 "from", one->source, "dtype", npumem_dtype_name(one->dtype), "elements",
					 (json_int_t)one->values.n, "frac_bits", (json_int_t)one->frac_bits,
					 "candidates", candidates_array(one)));
	}
	return array;
}

static void print_one(const struct measured *one)
{
	struct table table;
	present_text(stdout, "%s%s%s: %zu numbers as %s", one->role, *one->role ? " " : "", one->source,
		     one->values.n, npumem_dtype_name(one->dtype));
	table_init(&table, one->sums[0] ? "  format|>clipped|>largest error|>SNR dB|sums"
					: "  format|>clipped|>largest error|>SNR dB|");
	table.within = terminal_columns(STDOUT_FILENO);
	table.spare = "2";
	table.cut = 4;
	for (unsigned k = 0; k < one->n; k++) {
		const struct formats_candidate *c = &one->candidates[k];
		table_cell(&table, "%s Q.%" PRId64, c->frac_bits == one->frac_bits ? ">" : " ", c->frac_bits);
		table_cell(&table, "%" PRId64, c->clipped);
		table_cell(&table, "%.4g", c->largest);
		if (isfinite(c->snr))
			table_cell(&table, "%.1f", c->snr);
		else
			table_cell(&table, "exact");
		table_cell(&table, "%s", one->sums[k] ? one->sums[k] : "");
	}
	table_print(&table, stdout);
}

void measure_print(const struct measure *measure)
{
	for (unsigned i = 0; i < measure->n; i++)
		print_one(&measure->list[i]);
}
