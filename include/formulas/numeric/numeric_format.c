/* Formats Qm.n and what the four operations make of them ("Operations on FX values").
 * A format that passed its check has |m| and |n| up to NPUMEM_FORMAT_BITS_MAX, so that no sum of a few of them
 * leaves 64 bits. Values are none of its business. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <npumem/numeric.h>

enum { FORMAT_DIGITS_MAX = 9 };

/* Reads "-12" up to a character that is no digit; NULL where there is no number. */
static const char *read_bits(const char *at, int64_t *bits)
{
	bool negative = *at == '-';
	at += negative;
	size_t digits = strspn(at, "0123456789");
	if (digits == 0 || digits > FORMAT_DIGITS_MAX)
		return NULL;
	*bits = 0;
	for (size_t i = 0; i < digits; i++)
		*bits = *bits * 10 + (at[i] - '0');
	*bits = negative ? -*bits : *bits;
	return at + digits;
}

int npumem_format_parse(const char *text, struct npumem_format *format, struct npumem_error *error)
{
	struct npumem_format parsed;
	const char *at = text && *text == 'Q' ? read_bits(text + 1, &parsed.integer_bits) : NULL;
	at = at && *at == '.' ? read_bits(at + 1, &parsed.frac_bits) : NULL;
	if (!at || *at)
		return npumem_error_set(
			error, NPUMEM_INVALID,
			"\"%.60s\" is not a format: Qm.n has m integer and n fractional bits, as Q4.3",
			text ? text : "");
	*format = parsed;
	return 0;
}

const char *npumem_format_text(const struct npumem_format *format, char *text)
{
	snprintf(text, NPUMEM_FORMAT_TEXT_BYTES, "Q%" PRId64 ".%" PRId64, format->integer_bits, format->frac_bits);
	return text;
}

int npumem_format_of(int dtype, int64_t frac_bits, struct npumem_format *format, struct npumem_error *error)
{
	if (!npumem_dtype_is_fixed(dtype)) {
		const char *name = npumem_dtype_name(dtype);
		return npumem_error_set(error, NPUMEM_INVALID, "%s is not fx8 or fx16", name ? name : "the type");
	}
	if (frac_bits < 0 || frac_bits > NPUMEM_FRAC_BITS_MAX)
		return npumem_error_set(error, NPUMEM_INVALID, "%" PRId64 " frac_bits is not in 0..%d", frac_bits,
					NPUMEM_FRAC_BITS_MAX);
	*format = (struct npumem_format){8 * (int64_t)npumem_dtype_bytes(dtype) - 1 - frac_bits, frac_bits};
	return 0;
}

void npumem_format_range(const struct npumem_format *format, double *low, double *high)
{
	*low = -ldexp(1.0, (int)format->integer_bits);
	*high = -*low - ldexp(1.0, -(int)format->frac_bits);
}

int npumem_extra_bits(int64_t n)
{
	return n < 2 ? 0 : 64 - __builtin_clzll((unsigned long long)n - 1);
}

static int check_bits(const char *what, int64_t bits, struct npumem_error *error)
{
	if (bits >= -NPUMEM_FORMAT_BITS_MAX && bits <= NPUMEM_FORMAT_BITS_MAX)
		return 0;
	return npumem_error_set(error, NPUMEM_INVALID, "%" PRId64 " %s bits is not in %d..%d", bits, what,
				-NPUMEM_FORMAT_BITS_MAX, NPUMEM_FORMAT_BITS_MAX);
}

static int check(const struct npumem_format *format, struct npumem_error *error)
{
	char text[NPUMEM_FORMAT_TEXT_BYTES];
	int status = check_bits("integer", format->integer_bits, error);
	if (!status)
		status = check_bits("fractional", format->frac_bits, error);
	if (!status && format->integer_bits + format->frac_bits < 0)
		return npumem_error_set(
			error, NPUMEM_INVALID, "%s has %" PRId64 " bits beside the sign, fewer than 0",
			npumem_format_text(format, text), format->integer_bits + format->frac_bits);
	return status;
}

static int check_both(const struct npumem_format *x, const struct npumem_format *y, struct npumem_error *error)
{
	int status = check(x, error);
	return status ? status : check(y, error);
}

static void finish(struct npumem_format_result *result)
{
	result->significant_bits = result->format.integer_bits + result->format.frac_bits;
	result->precision_lost = result->significant_bits <= 0;
}

int npumem_format_add(const struct npumem_format *x, const struct npumem_format *y,
		      struct npumem_format_result *result, struct npumem_error *error)
{
	int status = check_both(x, y, error);
	if (status)
		return status;
	int64_t integer_bits = x->integer_bits > y->integer_bits ? x->integer_bits : y->integer_bits;
	int64_t frac_bits = x->frac_bits > y->frac_bits ? x->frac_bits : y->frac_bits;
	*result = (struct npumem_format_result){
		.format = {integer_bits + 1, frac_bits},
		.every = {integer_bits + 1, frac_bits},
		.extra_bits = 1,
		.shift_x = frac_bits - x->frac_bits,
		.shift_y = frac_bits - y->frac_bits,
	};
	finish(result);
	return 0;
}

int npumem_format_mul(const struct npumem_format *x, const struct npumem_format *y,
		      struct npumem_format_result *result, struct npumem_error *error)
{
	int status = check_both(x, y, error);
	if (status)
		return status;
	int64_t integer_bits = x->integer_bits + y->integer_bits, frac_bits = x->frac_bits + y->frac_bits;
	*result = (struct npumem_format_result){
		.format = {integer_bits, frac_bits},
		/* -2^m1 * -2^m2 is 2^(m1+m2), one step past the format. */
		.every = {integer_bits + 1, frac_bits},
	};
	finish(result);
	return 0;
}

int npumem_format_div(const struct npumem_format *x, const struct npumem_format *y,
		      struct npumem_format_result *result, struct npumem_error *error)
{
	int status = check_both(x, y, error);
	if (status)
		return status;
	int64_t frac_bits = x->frac_bits - y->frac_bits;
	*result = (struct npumem_format_result){
		.format = {x->integer_bits - y->integer_bits, frac_bits},
		/* -2^m1 by the divisor's last bit with its sign, -2^-n2, is 2^(m1+n2). */
		.every = {x->integer_bits + y->frac_bits + 1, frac_bits},
	};
	finish(result);
	return 0;
}

int npumem_format_sum(const struct npumem_format *x, int64_t n, struct npumem_format_result *result,
		      struct npumem_error *error)
{
	int status = check(x, error);
	if (status)
		return status;
	if (n < 1)
		return npumem_error_set(error, NPUMEM_INVALID, "a sum of %" PRId64 " values: at least 1 is needed",
					n);
	int64_t extra_bits = npumem_extra_bits(n);
	*result = (struct npumem_format_result){
		.format = {x->integer_bits + extra_bits, x->frac_bits},
		.every = {x->integer_bits + extra_bits, x->frac_bits},
		.extra_bits = extra_bits,
	};
	finish(result);
	return 0;
}
