/* Accumulators against the extremes of what they add up ("Influence of Accumulator Bit Depth"): 32 bits for fx8,
 * 40 for fx16 and for fx16 data with fx8 weights, no saturation inside, the bias shifted left into their format.
 * Every total here is below 2^63: 2^32 products of 2^30, and a bias below 2^56. */
#include "include/formulas/numeric/numeric_bounds.h"

#include <inttypes.h>
#include <stdio.h>

/* A bias shifted further has no bit inside an accumulator. */
enum { BIAS_SHIFT_MAX = 40 };

void npumem_terms_init(struct npumem_terms *terms)
{
	*terms = (struct npumem_terms){
		.data_frac_bits = NPUMEM_ANY,
		.weights_frac_bits = NPUMEM_ANY,
		.bias_frac_bits = NPUMEM_ANY,
	};
}

/* ---- checks ---- */

static int check_types(const struct npumem_terms *terms, struct npumem_error *error)
{
	const char *data = npumem_dtype_name(terms->data_dtype),
		   *weights = npumem_dtype_name(terms->weights_dtype);
	if (!npumem_dtype_is_fixed(terms->data_dtype))
		return npumem_error_set(error, NPUMEM_INVALID, "data is %s, but must be fx8 or fx16",
					data ? data : "of no type");
	if (!terms->weights_dtype && terms->has_bias)
		return npumem_error_set(error, NPUMEM_INVALID, "a bias without weights");
	if (!terms->weights_dtype || terms->weights_dtype == terms->data_dtype ||
	    (terms->data_dtype == NPUMEM_FX16 && terms->weights_dtype == NPUMEM_FX8))
		return 0;
	return npumem_error_set(error, NPUMEM_INVALID, "weights are %s, but must be %s with %s data",
				weights ? weights : "of no type",
				terms->data_dtype == NPUMEM_FX16 ? "fx16 or fx8" : "fx8", data);
}

static int check_frac_bits(const char *what, int64_t frac_bits, struct npumem_error *error)
{
	if (frac_bits == NPUMEM_ANY || (frac_bits >= 0 && frac_bits <= NPUMEM_FRAC_BITS_MAX))
		return 0;
	return npumem_error_set(error, NPUMEM_INVALID, "%s: %" PRId64 " frac_bits is not in 0..%d", what,
				frac_bits, NPUMEM_FRAC_BITS_MAX);
}

static int check_bias(const struct npumem_terms *terms, struct npumem_error *error)
{
	if (!terms->has_bias || terms->bias_frac_bits == NPUMEM_ANY)
		return 0;
	if (terms->data_frac_bits == NPUMEM_ANY || terms->weights_frac_bits == NPUMEM_ANY)
		return npumem_error_set(error, NPUMEM_INVALID,
					"the bias has %" PRId64
					" frac_bits, but those of data and weights are not given",
					terms->bias_frac_bits);
	int64_t most = terms->data_frac_bits + terms->weights_frac_bits;
	if (terms->bias_frac_bits <= most)
		return 0;
	npumem_error_number(error, "value", terms->bias_frac_bits);
	npumem_error_number(error, "expected", most);
	return npumem_error_set(error, NPUMEM_INVALID,
				"the bias has %" PRId64 " frac_bits, more than the %" PRId64 " of data (%" PRId64
				") and weights (%" PRId64 ")",
				terms->bias_frac_bits, most, terms->data_frac_bits, terms->weights_frac_bits);
}

/* n elements, or any number of them where only their sum is given. */
static int64_t count(const struct npumem_terms *terms)
{
	return terms->n == 0 && terms->weights_sum ? NPUMEM_PRODUCTS_MAX : terms->n;
}

static int check_counts(const struct npumem_terms *terms, struct npumem_error *error)
{
	int64_t low, high;
	if (terms->n < 0 || terms->n > NPUMEM_PRODUCTS_MAX)
		return npumem_error_set(error, NPUMEM_INVALID,
					"%" PRId64 " products of one output is not in 0..%" PRId64, terms->n,
					NPUMEM_PRODUCTS_MAX);
	if (!terms->weights_sum)
		return 0;
	if (!npumem_dtype_range(terms->weights_dtype, &low, &high))
		return npumem_error_set(error, NPUMEM_INVALID, "a sum of |weights| without weights");
	if (terms->weights_sum >= 0 && terms->weights_sum <= count(terms) * -low)
		return 0;
	return npumem_error_set(error, NPUMEM_INVALID,
				"a sum of |weights| of %" PRId64 " is not in 0..%" PRId64
				", which is all that %" PRId64 " weights of %s can have",
				terms->weights_sum, count(terms) * -low, count(terms),
				npumem_dtype_name(terms->weights_dtype));
}

int numeric_bounds_check(const struct npumem_terms *terms, struct npumem_error *error)
{
	int status = check_types(terms, error);
	if (!status)
		status = check_frac_bits("data", terms->data_frac_bits, error);
	if (!status)
		status = check_frac_bits("weights", terms->weights_frac_bits, error);
	if (!status)
		status = check_frac_bits("bias", terms->bias_frac_bits, error);
	if (!status)
		status = check_bias(terms, error);
	return status ? status : check_counts(terms, error);
}

/* ---- ranges ---- */

/* A container's values after so many frac_bits were given up: the largest rounds up to the next power of two. */
static struct numeric_span container(int dtype, int64_t give_up)
{
	struct numeric_span span = {1, 1};
	npumem_dtype_range(dtype, &span.low, &span.high);
	if (give_up == 0)
		return span;
	int64_t bits = 8 * (int64_t)npumem_dtype_bytes(dtype) - 1;
	int64_t most = give_up < bits ? INT64_C(1) << (bits - give_up) : 1;
	return (struct numeric_span){-most, most};
}

struct numeric_span numeric_bounds_product(const struct numeric_load *load)
{
	const struct numeric_span *d = &load->data, *w = &load->weights;
	if (w->low == 1)
		return *d;
	int64_t a = d->low * w->high, b = d->high * w->low, most = d->low * w->low;
	return (struct numeric_span){a < b ? a : b, most};
}

static void load_bias(const struct npumem_terms *terms, int64_t give_up, struct numeric_load *load)
{
	if (!terms->has_bias)
		return;
	if (terms->bias_frac_bits == NPUMEM_ANY) {
		load->bias = numeric_bounds_product(load);
		return;
	}
	int64_t shift = terms->data_frac_bits + terms->weights_frac_bits - terms->bias_frac_bits - give_up;
	load->bias = container(terms->weights_dtype, shift < 0 ? -shift : 0);
	load->bias_beyond = shift > BIAS_SHIFT_MAX;
	int64_t unit = INT64_C(1) << (shift < 0 ? 0 : load->bias_beyond ? BIAS_SHIFT_MAX : shift);
	load->bias.low *= unit;
	load->bias.high *= unit;
}

void numeric_bounds_load(const struct npumem_terms *terms, int64_t give_up_data, int64_t give_up_weights,
			 struct numeric_load *load)
{
	int64_t end = INT64_C(1) << (terms->data_dtype == NPUMEM_FX8 ? 31 : 39);
	*load = (struct numeric_load){
		.data = container(terms->data_dtype, give_up_data),
		.weights = container(terms->weights_dtype, give_up_weights),
		.n = count(terms),
		.weights_sum = terms->weights_sum,
		.accumulator = {-end, end - 1},
	};
	if (give_up_weights && terms->weights_sum) {
		/* Each of them rounds by at most half a step, and none past its new range. */
		int64_t half = load->n * (INT64_C(1) << (give_up_weights - 1));
		int64_t rounded = (terms->weights_sum + half) >> give_up_weights;
		int64_t most = load->n * load->weights.high;
		load->weights_sum = rounded < most ? rounded : most;
	}
	load_bias(terms, give_up_data + give_up_weights, load);
}

/* The products of weights of whose absolute values only the sum is known. */
static struct numeric_span sum_extremes(const struct numeric_load *load)
{
	/* The sum is largest where all weights are negative, and smallest where all are positive; but a container
	 * holds one step more below 0 than above. Data is no narrower than weights, so that smaller weights give
	 * no smaller sum. */
	int64_t rest = load->weights_sum - load->n * load->weights.high;
	int64_t negative = rest > 0 ? rest * -load->weights.low : 0;
	return (struct numeric_span){
		load->data.low * (load->weights_sum - negative) - load->data.high * negative,
		-load->data.low * load->weights_sum,
	};
}

struct numeric_span numeric_bounds_extremes(const struct numeric_load *load)
{
	struct numeric_span one = numeric_bounds_product(load), all = {load->n * one.low, load->n * one.high};
	if (load->weights_sum)
		all = sum_extremes(load);
	return (struct numeric_span){all.low + load->bias.low, all.high + load->bias.high};
}

bool numeric_bounds_fit(const struct numeric_load *load)
{
	struct numeric_span total = numeric_bounds_extremes(load);
	return total.low >= load->accumulator.low && total.high <= load->accumulator.high;
}

/* ---- what is safe, and what breaks ---- */

int64_t numeric_bounds_steps(const struct numeric_load *load, int64_t low, int64_t high, bool *up)
{
	int64_t above = load->accumulator.high - load->bias.high, below = load->bias.low - load->accumulator.low;
	int64_t n_above = above < 0 ? -1 : above / high, n_below = below < 0 ? -1 : below / -low;
	*up = n_above <= n_below;
	return *up ? n_above : n_below;
}

/* "2^39 = 549755813888". */
static const char *number_text(int64_t number, char *text, size_t bytes)
{
	uint64_t magnitude = number < 0 ? -(uint64_t)number : (uint64_t)number;
	if (magnitude >= 1024 && (magnitude & (magnitude - 1)) == 0)
		snprintf(text, bytes, "%s2^%d = %" PRId64, number < 0 ? "-" : "", __builtin_ctzll(magnitude),
			 number);
	else
		snprintf(text, bytes, "%" PRId64, number);
	return text;
}

/* "a bias of 32767 << 5". */
static const char *bias_text(const struct npumem_terms *terms, bool up, char *text, size_t bytes)
{
	int64_t low = 0, high = 0;
	npumem_dtype_range(terms->weights_dtype, &low, &high);
	text[0] = 0;
	if (terms->has_bias && terms->bias_frac_bits == NPUMEM_ANY)
		snprintf(text, bytes, "a bias like one more");
	else if (terms->has_bias)
		snprintf(text, bytes, "a bias of %" PRId64 " << %" PRId64, up ? high : low,
			 terms->data_frac_bits + terms->weights_frac_bits - terms->bias_frac_bits);
	return text;
}

/* "512 products of -32768 * -32768". */
static void products_text(const struct numeric_load *load, int64_t n, bool up, char *text, size_t bytes)
{
	const struct numeric_span *d = &load->data, *w = &load->weights;
	bool multiplied = w->low != 1, data_low = up || d->low * w->high <= d->high * w->low;
	if (!multiplied)
		snprintf(text, bytes, "%" PRId64 " value%s of %" PRId64, n, n == 1 ? "" : "s",
			 up ? d->high : d->low);
	else
		snprintf(text, bytes, "%" PRId64 " product%s of %" PRId64 " * %" PRId64, n, n == 1 ? "" : "s",
			 data_low ? d->low : d->high, up || !data_low ? w->low : w->high);
}

static void breaks_text(const struct npumem_terms *terms, const struct numeric_load *load,
			struct npumem_bound *bound)
{
	char what[96], bias[64], total[64];
	bool known = load->weights_sum != 0, up;
	struct numeric_span one =
		known ? (struct numeric_span){load->data.low, -load->data.low} : numeric_bounds_product(load);
	int64_t n = numeric_bounds_steps(load, one.low, one.high, &up) + 1;
	int64_t at = n * (up ? one.high : one.low) + (up ? load->bias.high : load->bias.low);
	int64_t past = up ? load->accumulator.high : load->accumulator.low;
	bias_text(terms, up, bias, sizeof(bias));
	if (load->bias_beyond)
		snprintf(bound->breaks, sizeof(bound->breaks),
			 "any bias but 0 is past the %d bits of the accumulator: it is shifted left by %" PRId64,
			 bound->accumulator_bits,
			 terms->data_frac_bits + terms->weights_frac_bits - terms->bias_frac_bits);
	else if (n == 0)
		snprintf(bound->breaks, sizeof(bound->breaks), "%s alone reaches %s, past %" PRId64, bias,
			 number_text(at, total, sizeof(total)), past);
	else {
		if (known)
			snprintf(what, sizeof(what),
				 "data of %" PRId64 " with %s weights that add up to %s%" PRId64, load->data.low,
				 up ? "negative" : "positive", up ? "-" : "", n);
		else
			products_text(load, n, up, what, sizeof(what));
		snprintf(bound->breaks, sizeof(bound->breaks), "%s%s%s reach %s, past %" PRId64, what,
			 bias[0] ? " and " : "", bias, number_text(at, total, sizeof(total)), past);
	}
}

int npumem_bound(const struct npumem_terms *terms, struct npumem_bound *bound, struct npumem_error *error)
{
	struct numeric_load load;
	int status = numeric_bounds_check(terms, error);
	if (status)
		return status;
	numeric_bounds_load(terms, 0, 0, &load);
	struct numeric_span one = numeric_bounds_product(&load), total = numeric_bounds_extremes(&load);
	bool up;
	*bound = (struct npumem_bound){
		.accumulator_bits = terms->data_dtype == NPUMEM_FX8 ? 32 : 40,
		.low = load.accumulator.low,
		.high = load.accumulator.high,
		.safe = numeric_bounds_steps(&load, one.low, one.high, &up),
		.safe_weights_sum = terms->weights_dtype
					    ? numeric_bounds_steps(&load, load.data.low, -load.data.low, &up)
					    : -1,
		.least = load.bias_beyond ? INT64_MIN : total.low,
		.most = load.bias_beyond ? INT64_MAX : total.high,
		.can_overflow = !numeric_bounds_fit(&load),
	};
	breaks_text(terms, &load, bound);
	return 0;
}
