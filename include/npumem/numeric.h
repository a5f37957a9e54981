/* Numeric planning: which formats the results of fixed point have, what the accumulators hold, and which frac_bits
 * to give up on which operand where they would overflow. Pure and without state; no daemon is needed.
 * Source: the vendor's "Arithmetic Details" chapter. Its counts of products that cannot overflow are one too many:
 * the minimum times the minimum is one past the product's format, so 512 such fx16 products reach 2^39.
 *
 * Everything is exact integer arithmetic over all values that the containers can hold. */
#ifndef NPUMEM_NUMERIC_H
#define NPUMEM_NUMERIC_H

#include <npumem/kernels.h>
#include <npumem/layout.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	NPUMEM_FORMAT_BITS_MAX = 1023, /* of an operand's m and n, either sign */
	NPUMEM_FORMAT_TEXT_BYTES = 48,
	NPUMEM_SUMS_MAX = NPUMEM_OPERANDS_MAX / 2, /* of one kernel */
	NPUMEM_PATTERN_BYTES = 200,
	NPUMEM_ADVICE_BYTES = 320,
};
/* The most that one output may add up, as in the device. */
#define NPUMEM_PRODUCTS_MAX (INT64_C(1) << 32)

/* ---- formats ---- */

/* Qm.n: m integer bits, the sign not counted, and n fractional bits. Either may be negative: is what an
 * 8-bit container holds with 10 frac_bits. */
struct npumem_format {
	int64_t integer_bits, frac_bits;
};

/* What an operation gives. */
struct npumem_format_result {
	struct npumem_format format; /* by the chapter's rule */
	struct npumem_format
		every;		  /* the smallest that holds the results of all operands, the extremes included */
	int64_t significant_bits; /* m + n of `format` */
	int64_t extra_bits;	  /* add, sum: integer bits beyond the larger operand's */
	int64_t shift_x, shift_y; /* add: left shifts that bring both to the larger n */
	bool precision_lost;	  /* no significant bits are left: div with too small a dividend */
};

/* "Q4.3", "Q4.-4". 0 or INVALID. */
int npumem_format_parse(const char *text, struct npumem_format *format, struct npumem_error *error);
/* The other way; returns `text`, NPUMEM_FORMAT_TEXT_BYTES long. */
const char *npumem_format_text(const struct npumem_format *format, char *text);
/* What fx8 or fx16 with frac_bits 0..127 is: fx16 with 11 is Q4.11. 0 or INVALID. */
int npumem_format_of(int dtype, int64_t frac_bits, struct npumem_format *format, struct npumem_error *error);
/* The real numbers that it holds: [-2^m, 2^m - 2^-n]. */
void npumem_format_range(const struct npumem_format *format, double *low, double *high);
/* ceil(log2 n): the integer bits that the sum of n values needs beyond one value's. 0 for n below 2. */
int npumem_extra_bits(int64_t n);

/* Each: 0, or INVALID where an operand has m or n beyond NPUMEM_FORMAT_BITS_MAX, or fewer than 0 bits in all;
 * `result` is then unchanged. */

/* x + y and x - y, aligned to the larger n. */
int npumem_format_add(const struct npumem_format *x, const struct npumem_format *y,
		      struct npumem_format_result *result, struct npumem_error *error);
/* Q(m1+m2).(n1+n2); min * min is one past it. */
int npumem_format_mul(const struct npumem_format *x, const struct npumem_format *y,
		      struct npumem_format_result *result, struct npumem_error *error);
/* x / y by integer division: Q(m1-m2).(n1-n2), which takes a divisor that uses its upper bits. */
int npumem_format_div(const struct npumem_format *x, const struct npumem_format *y,
		      struct npumem_format_result *result, struct npumem_error *error);
/* The sum of n values, n >= 1. */
int npumem_format_sum(const struct npumem_format *x, int64_t n, struct npumem_format_result *result,
		      struct npumem_error *error);

/* ---- accumulators ---- */

/* What one accumulator adds up: n products of data and weights, or n data where weights_dtype is 0, and a bias of
 * the weights' type, shifted left by data_frac_bits + weights_frac_bits - bias_frac_bits.
 * frac_bits may be NPUMEM_ANY (unknown) where nothing depends on them. */
struct npumem_terms {
	int data_dtype;	   /* fx8, fx16 */
	int weights_dtype; /* the same; fx8 with fx16 data; 0: nothing is multiplied, and there is no bias */
	int64_t data_frac_bits, weights_frac_bits;
	bool has_bias;
	int64_t bias_frac_bits; /* NPUMEM_ANY: it counts as one more product, as the chapter counts it */
	int64_t n;		/* 0..NPUMEM_PRODUCTS_MAX, without the bias */
	int64_t weights_sum;	/* the largest sum of |weights| of one output, in the container's integers; 0:
				 * unknown */
};

/* All frac_bits NPUMEM_ANY, the rest 0. */
void npumem_terms_init(struct npumem_terms *terms);

struct npumem_bound {
	int accumulator_bits; /* 32 for fx8, else 40 */
	int64_t low, high;    /* what it holds */
	int64_t safe;	      /* the most products (or data) that no operands overflow, bias included; -1: the bias
			       * alone can */
	int64_t safe_weights_sum; /* the same for the sum of |weights|, however many they are; -1 also without
				     weights */
	int64_t least, most; /* the exact extremes of the total; the ends of int64_t where a bias is shifted so
			      * far that it passes them */
	bool can_overflow;   /* some operands take the total out of [low, high] */
	char breaks[NPUMEM_PATTERN_BYTES]; /* the operands that break one more than the safe ones, and where they
					      get */
};

/* 0, or INVALID: types that do not go together, frac_bits not in 0..127, a bias with more frac_bits than data and
 * weights, counts out of range; `bound` is then unchanged. */
int npumem_bound(const struct npumem_terms *terms, struct npumem_bound *bound, struct npumem_error *error);

/* ---- kernels ---- */

/* A kernel's tensor, by role. */
struct npumem_numeric_operand {
	const char *role;
	struct npumem_dims shape; /* as KERNEL's row has it; a matrix is [rows, cols, 1, 1]; all 0: not given */
	int64_t frac_bits;	  /* NPUMEM_ANY: not given */
	int64_t weights_sum;	  /* of weights, as in struct npumem_terms; 0: unknown */
};

/* What is planned. A bias counts where the operands have it; a bias without frac_bits as one more product. */
struct npumem_advise {
	const char *kernel;
	int data_dtype;
	int weights_dtype; /* 0: the data's */
	const struct npumem_numeric_operand *operands;
	unsigned n_operands;
	const struct npumem_param *params; /* as the kernel takes them */
	unsigned n_params;
};

/* One accumulator of a kernel. Most have one; rnn_dense has one per input, the cells one for the input and one for
 * the previous output. */
struct npumem_sum {
	char data[NPUMEM_FIELD_KEY_BYTES]; /* roles; empty: none */
	char weights[NPUMEM_FIELD_KEY_BYTES];
	char bias[NPUMEM_FIELD_KEY_BYTES];
	struct npumem_terms terms;
	struct npumem_bound bound;
	int64_t additions;			       /* n, and 1 for a bias */
	int64_t extra_bits, available_bits, over_bits; /* the chapter's estimate: ceil(log2 additions), what the
							* accumulator has beyond a product, and what is lacking */
	bool possible; /* the bits below are enough; else no frac_bits in 0..127 that keep a significant bit are */
	int64_t give_up_data, give_up_weights; /* frac_bits to give up, 0 where nothing can overflow */
	int64_t data_frac_bits, weights_frac_bits, bias_frac_bits; /* the new ones; NPUMEM_ANY where unknown */
	char advice[NPUMEM_ADVICE_BYTES];
};

struct npumem_advice {
	unsigned n_sums;
	struct npumem_sum sums[NPUMEM_SUMS_MAX];
	bool can_overflow; /* any of them */
	/* The result against its container, by the extremes that the accumulators hold; where out and all formats
	 * are given, and the kernel rounds its accumulators into out. */
	bool has_out;
	bool saturates;
	int64_t out_frac_bits, safe_out_frac_bits; /* the most that never saturate; NPUMEM_ANY: not even 0 */
};

/* How many products or data one output of the kernel adds up, taps in the padding left out; whether that can
 * overflow; and which frac_bits to give up, on both operands alike, the odd bit on the one that has more (on the
 * weights where they have as many), none below 0.
 * 0, or INVALID: a kernel that adds nothing up, shapes that do not go together, and what npumem_bound refuses;
 * `advice` is then undefined. */
int npumem_advise(const struct npumem_advise *question, struct npumem_advice *advice, struct npumem_error *error);

/* ---- any of them ---- */

enum npumem_numeric_kind {
	NPUMEM_NUMERIC_ADD = 1,
	NPUMEM_NUMERIC_MUL,
	NPUMEM_NUMERIC_DIV,
	NPUMEM_NUMERIC_SUM,
	NPUMEM_NUMERIC_BOUND,
	NPUMEM_NUMERIC_ADVISE,
};

struct npumem_numeric {
	enum npumem_numeric_kind kind;
	struct npumem_format x, y; /* add, mul, div; sum: x alone */
	int64_t n;		   /* sum */
	struct npumem_terms terms; /* bound */
	struct npumem_advise advise;
};

struct npumem_numeric_answer {
	enum npumem_numeric_kind kind;
	struct npumem_format_result result;
	struct npumem_bound bound;
	struct npumem_advice advice;
};

/* Answers by kind; only that kind's member of the answer is set. 0 or INVALID. */
int npumem_numeric(const struct npumem_numeric *question, struct npumem_numeric_answer *answer,
		   struct npumem_error *error);

#ifdef __cplusplus
}
#endif
#endif
