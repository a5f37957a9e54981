/* From a kernel's sums to advice: what can overflow, and which frac_bits to give up so that nothing can.
 * A tensor's real values stay what they are: with a frac_bit less they use a bit less of their container, and that
 * bit is the accumulator's. The answer is the least that is enough by the exact bound; the chapter's estimate
 * stands beside it. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "include/formulas/numeric/numeric_bounds.h"
#include "include/formulas/numeric/numeric_sums.h"

/* ---- which bits to give up ---- */

static int64_t container_bits(int dtype)
{
	return dtype ? 8 * (int64_t)npumem_dtype_bytes(dtype) - 1 : 0;
}

/* What an operand can give: none below 0 frac_bits, and one significant bit stays. */
static int64_t most_to_give(int dtype, int64_t frac_bits)
{
	int64_t bits = container_bits(dtype) - 1;
	if (!dtype)
		return 0;
	return frac_bits != NPUMEM_ANY && frac_bits < bits ? frac_bits : bits;
}

static bool odd_from_data(const struct npumem_terms *terms)
{
	return !terms->weights_dtype ||
	       (terms->data_frac_bits != NPUMEM_ANY && terms->weights_frac_bits != NPUMEM_ANY &&
		terms->data_frac_bits > terms->weights_frac_bits);
}

/* Evenly, as far as both have them to give. */
static void split(const struct npumem_terms *terms, int64_t total, struct npumem_sum *sum)
{
	int64_t most_data = most_to_give(terms->data_dtype, terms->data_frac_bits);
	int64_t most_weights = most_to_give(terms->weights_dtype, terms->weights_frac_bits);
	int64_t data = total / 2 + (odd_from_data(terms) ? total % 2 : 0);
	if (total - data > most_weights)
		data = total - most_weights;
	if (data > most_data)
		data = most_data;
	sum->give_up_data = data;
	sum->give_up_weights = total - data;
}

static int64_t less(int64_t frac_bits, int64_t give_up)
{
	return frac_bits == NPUMEM_ANY ? NPUMEM_ANY : frac_bits - give_up;
}

static void give_up(const struct npumem_terms *terms, struct npumem_sum *sum)
{
	int64_t most = most_to_give(terms->data_dtype, terms->data_frac_bits) +
		       most_to_give(terms->weights_dtype, terms->weights_frac_bits);
	sum->possible = !sum->bound.can_overflow;
	for (int64_t total = 1; total <= most && !sum->possible; total++) {
		struct numeric_load load;
		split(terms, total, sum);
		numeric_bounds_load(terms, sum->give_up_data, sum->give_up_weights, &load);
		sum->possible = numeric_bounds_fit(&load);
	}
	sum->data_frac_bits = less(terms->data_frac_bits, sum->give_up_data);
	sum->weights_frac_bits = less(terms->weights_frac_bits, sum->give_up_weights);
	sum->bias_frac_bits = terms->bias_frac_bits;
	if (terms->bias_frac_bits != NPUMEM_ANY &&
	    terms->bias_frac_bits > sum->data_frac_bits + sum->weights_frac_bits)
		sum->bias_frac_bits = sum->data_frac_bits + sum->weights_frac_bits;
}

/* ---- words ---- */

static void __attribute__((format(printf, 2, 3))) say(char *text, const char *format, ...)
{
	size_t used = strlen(text);
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text + used, NPUMEM_ADVICE_BYTES - used, format, arguments);
	va_end(arguments);
}

/* "in from Q.11 to Q.10". */
static void say_operand(char *text, const char *role, int64_t old, int64_t bits, const char *separator)
{
	if (bits == 0)
		return;
	if (old == NPUMEM_ANY)
		say(text, "%s%" PRId64 " of %s", separator, bits, role);
	else
		say(text, "%s%s from Q.%" PRId64 " to Q.%" PRId64, separator, role, old, old - bits);
}

static void say_odd(struct npumem_sum *sum)
{
	int64_t difference = sum->give_up_data - sum->give_up_weights;
	if (!sum->weights[0] || difference == 0)
		return;
	const char *more = difference > 0 ? sum->data : sum->weights,
		   *other = difference > 0 ? sum->weights : sum->data;
	bool odd = difference == (odd_from_data(&sum->terms) ? 1 : -1);
	if (!odd)
		say(sum->advice, "; %s has no more to give", other);
	else if (sum->data_frac_bits == NPUMEM_ANY || sum->weights_frac_bits == NPUMEM_ANY)
		say(sum->advice, "; take the odd bit from the one with more frac_bits");
	else if (sum->terms.data_frac_bits == sum->terms.weights_frac_bits)
		say(sum->advice, "; the odd bit of %s, as both have as many frac_bits", more);
	else
		say(sum->advice, "; the odd bit of %s, which has more frac_bits", more);
}

static void say_advice(struct npumem_sum *sum)
{
	const struct npumem_terms *terms = &sum->terms;
	const char *what = terms->weights_dtype ? "product" : "value";
	int64_t bits = sum->give_up_data + sum->give_up_weights;
	sum->advice[0] = 0;
	if (!sum->bound.can_overflow && terms->weights_sum) {
		say(sum->advice, "keep the formats: weights that add up to %" PRId64 " cannot overflow",
		    terms->weights_sum);
		return;
	}
	if (!sum->bound.can_overflow) {
		say(sum->advice, "keep the formats: %" PRId64 " %s%s cannot overflow", terms->n, what,
		    terms->n == 1 ? "" : "s");
		return;
	}
	if (!sum->possible) {
		say(sum->advice, "add up fewer than %" PRId64 " %ss at a time: no frac_bits are enough", terms->n,
		    what);
		return;
	}
	say(sum->advice, "give up %" PRId64 " bit%s: ", bits, bits == 1 ? "" : "s");
	say_operand(sum->advice, sum->data, terms->data_frac_bits, sum->give_up_data, "");
	say_operand(sum->advice, sum->weights, terms->weights_frac_bits, sum->give_up_weights,
		    sum->give_up_data ? ", " : "");
	say_odd(sum);
	if (sum->bias_frac_bits != terms->bias_frac_bits)
		say(sum->advice, "; bias then from Q.%" PRId64 " to Q.%" PRId64, terms->bias_frac_bits,
		    sum->bias_frac_bits);
}

/* ---- one sum ---- */

static int check_weights(const struct npumem_advise *question, const struct numeric_sum *from,
			 struct npumem_error *error)
{
	const struct npumem_numeric_operand *wrong = from->data->weights_sum		     ? from->data
						     : from->bias && from->bias->weights_sum ? from->bias
											     : NULL;
	if (wrong)
		return npumem_error_set(error, NPUMEM_INVALID, "%s: a sum of |weights| is for weights, not for %s",
					question->kernel, wrong->role);
	if (!from->weights && question->weights_dtype && question->weights_dtype != question->data_dtype)
		return npumem_error_set(error, NPUMEM_INVALID, "%s has no weights to be %s", question->kernel,
					npumem_dtype_name(question->weights_dtype)
						? npumem_dtype_name(question->weights_dtype)
						: "of that type");
	return 0;
}

static int advise_sum(const struct npumem_advise *question, const struct numeric_sum *from, struct npumem_sum *sum,
		      struct npumem_error *error)
{
	int weights_dtype = question->weights_dtype ? question->weights_dtype : question->data_dtype;
	*sum = (struct npumem_sum){
		.terms = {
			.data_dtype = question->data_dtype,
			.weights_dtype = from->weights ? weights_dtype : 0,
			.data_frac_bits = from->data->frac_bits,
			.weights_frac_bits = from->weights ? from->weights->frac_bits : NPUMEM_ANY,
			.has_bias = from->bias,
			.bias_frac_bits = from->bias ? from->bias->frac_bits : NPUMEM_ANY,
			.n = from->n,
			.weights_sum = from->weights ? from->weights->weights_sum : 0,
		}};
	struct npumem_terms *terms = &sum->terms;
	int status = check_weights(question, from, error);
	if (!status)
		status = npumem_bound(terms, &sum->bound, error);
	if (status)
		return status;
	snprintf(sum->data, sizeof(sum->data), "%s", from->data->role);
	snprintf(sum->weights, sizeof(sum->weights), "%s", from->weights ? from->weights->role : "");
	snprintf(sum->bias, sizeof(sum->bias), "%s", from->bias ? from->bias->role : "");
	sum->additions = terms->n + terms->has_bias;
	sum->extra_bits = npumem_extra_bits(sum->additions);
	sum->available_bits = sum->bound.accumulator_bits - 1 - container_bits(terms->data_dtype) -
			      container_bits(terms->weights_dtype);
	sum->over_bits = sum->extra_bits > sum->available_bits ? sum->extra_bits - sum->available_bits : 0;
	give_up(terms, sum);
	say_advice(sum);
	return 0;
}

/* ---- the result ---- */

/* Far past any container, and small enough to add up. */
#define FAR (INT64_C(1) << 48)

static int64_t round_shift(int64_t value, int64_t shift, int rounding)
{
	if (shift <= 0) {
		bool far = -shift > 48 || value > (FAR >> -shift) || value < -(FAR >> -shift);
		return value == 0 ? 0 : far ? (value > 0 ? FAR : -FAR) : value * (INT64_C(1) << -shift);
	}
	if (shift > 62)
		return 0;
	int64_t down = value >> shift, half = INT64_C(1) << (shift - 1), rest = value - down * (2 * half);
	bool tie_up = rounding == NPUMEM_UP || (rounding == NPUMEM_NEAREST && value > 0) ||
		      (rounding == NPUMEM_CONVERGENT && down % 2);
	return down + (rest > half || (rest == half && tie_up));
}

/* Whether some result with `frac_bits` leaves its container. What a sum cannot be because it would wrap, it is
 * not. */
static bool saturates(const struct npumem_advice *advice, const struct numeric_sums *sums, int64_t frac_bits)
{
	int64_t low, high, least = 0, most = 0;
	npumem_dtype_range(advice->sums[0].terms.data_dtype, &low, &high);
	for (unsigned i = 0; i < advice->n_sums; i++) {
		const struct npumem_bound *bound = &advice->sums[i].bound;
		const struct npumem_terms *terms = &advice->sums[i].terms;
		int64_t shift =
			terms->data_frac_bits - frac_bits + (terms->weights_dtype ? terms->weights_frac_bits : 0);
		int64_t from = bound->least > bound->low ? bound->least : bound->low;
		int64_t to = bound->most < bound->high ? bound->most : bound->high;
		/* An average is nowhere beyond what it averages. */
		least += round_shift(sums->averages ? low : from, shift, sums->rounding);
		most += round_shift(sums->averages ? high : to, shift, sums->rounding);
	}
	return least < low || most > high;
}

static int advise_out(const struct numeric_sums *sums, struct npumem_advice *advice, struct npumem_error *error)
{
	struct npumem_format format;
	advice->out_frac_bits = advice->safe_out_frac_bits = NPUMEM_ANY;
	advice->has_out = sums->out && sums->out->frac_bits != NPUMEM_ANY && sums->rounds_into_out;
	for (unsigned i = 0; i < advice->n_sums; i++) {
		const struct npumem_terms *terms = &advice->sums[i].terms;
		if (terms->data_frac_bits == NPUMEM_ANY ||
		    (terms->weights_dtype && terms->weights_frac_bits == NPUMEM_ANY))
			advice->has_out = false;
	}
	if (!sums->out || sums->out->frac_bits == NPUMEM_ANY)
		return 0;
	int status = npumem_format_of(advice->sums[0].terms.data_dtype, sums->out->frac_bits, &format, error);
	if (status || !advice->has_out)
		return status;
	advice->out_frac_bits = sums->out->frac_bits;
	advice->saturates = saturates(advice, sums, advice->out_frac_bits);
	for (int64_t frac_bits = NPUMEM_FRAC_BITS_MAX; frac_bits >= 0; frac_bits--)
		if (!saturates(advice, sums, frac_bits)) {
			advice->safe_out_frac_bits = frac_bits;
			break;
		}
	return 0;
}

int npumem_advise(const struct npumem_advise *question, struct npumem_advice *advice, struct npumem_error *error)
{
	struct numeric_sums sums;
	int status = numeric_sums_find(question, &sums, error);
	if (status)
		return status;
	*advice = (struct npumem_advice){.n_sums = sums.n};
	for (unsigned i = 0; i < sums.n; i++) {
		status = advise_sum(question, &sums.sums[i], &advice->sums[i], error);
		if (status)
			return status;
		advice->can_overflow |= advice->sums[i].bound.can_overflow;
	}
	return advise_out(&sums, advice, error);
}

int npumem_numeric(const struct npumem_numeric *question, struct npumem_numeric_answer *answer,
		   struct npumem_error *error)
{
	answer->kind = question->kind;
	switch (question->kind) {
	case NPUMEM_NUMERIC_ADD:
		return npumem_format_add(&question->x, &question->y, &answer->result, error);
	case NPUMEM_NUMERIC_MUL:
		return npumem_format_mul(&question->x, &question->y, &answer->result, error);
	case NPUMEM_NUMERIC_DIV:
		return npumem_format_div(&question->x, &question->y, &answer->result, error);
	case NPUMEM_NUMERIC_SUM:
		return npumem_format_sum(&question->x, question->n, &answer->result, error);
	case NPUMEM_NUMERIC_BOUND:
		return npumem_bound(&question->terms, &answer->bound, error);
	case NPUMEM_NUMERIC_ADVISE:
		return npumem_advise(&question->advise, &answer->advice, error);
	}
	return npumem_error_set(error, NPUMEM_INVALID, "there is no numeric question %d", (int)question->kind);
}
