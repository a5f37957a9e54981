/* Numeric planning of fixed point: the formats of results, the range of accumulators, and how many frac_bits to
 * remove from which operand so that no accumulator overflows. The functions are pure and need no daemon. They do
 * not clear `error` (npumem_error_clear). All results are exact, for all values that the containers can hold.
 *
 * Source: the vendor's chapter "Arithmetic Details". Its numbers of products that cannot overflow are too large by
 * one. Example: the minimum times the minimum is one step above the range of the product's format, so 512 such
 * products of fx16 reach 2^39, one more than 40 bits hold. */
#ifndef NPUMEM_NUMERIC_H
#define NPUMEM_NUMERIC_H

#include <npumem/kernels.h>
#include <npumem/layout.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	NPUMEM_FORMAT_BITS_MAX = 1023, /* m and n of an operand are from -1023 to 1023 */
	NPUMEM_FORMAT_TEXT_BYTES = 48,
	NPUMEM_SUMS_MAX = NPUMEM_OPERANDS_MAX / 2, /* accumulators of one kernel */
	NPUMEM_PATTERN_BYTES = 200,
	NPUMEM_ADVICE_BYTES = 320,
};
/* The largest number of products of one output, as in the device. */
#define NPUMEM_PRODUCTS_MAX (INT64_C(1) << 32)

/* ---- formats ---- */

/* The format Qm.n: a sign, m integer bits and n fractional bits. m or n may be negative: is a container of
 * 8 bits with 10 frac_bits. */
struct npumem_format {
	int64_t integer_bits, frac_bits;
};

/* The format of an operation's result. */
struct npumem_format_result {
	struct npumem_format format; /* by the chapter's rule */
	struct npumem_format every;  /* the smallest that holds the results of all operands */
	int64_t significant_bits;    /* m + n of `format` */
	int64_t extra_bits;	     /* add, sum: integer bits in addition to the larger operand's */
	int64_t shift_x, shift_y;    /* add: left shifts of x and y to the larger n */
	bool precision_lost;	     /* significant_bits is 0 or less: a div whose dividend has too few bits */
};

/* Parses "Q4.3" or "Q4.-4". 0 or INVALID. */
int npumem_format_parse(const char *text, struct npumem_format *format, struct npumem_error *error);
/* Writes a format into `text`, which has NPUMEM_FORMAT_TEXT_BYTES. Returns `text`. */
const char *npumem_format_text(const struct npumem_format *format, char *text);
/* The format of fx8 or fx16 with frac_bits 0..127. Example: fx16 with 11 is Q4.11. 0 or INVALID. */
int npumem_format_of(int dtype, int64_t frac_bits, struct npumem_format *format, struct npumem_error *error);
/* The least and the largest real number of a format: -2^m and 2^m - 2^-n. */
void npumem_format_range(const struct npumem_format *format, double *low, double *high);
/* ceil(log2 n): the integer bits that a sum of n values needs in addition to those of one value. 0 for n below 2.
 */
int npumem_extra_bits(int64_t n);

/* The next four functions return 0, or INVALID: m or n of an operand is beyond NPUMEM_FORMAT_BITS_MAX, or m + n is
 * below 0; `result` is then unchanged. */

/* x + y and x - y: Q(max(m1, m2) + 1).max(n1, n2). */
int npumem_format_add(const struct npumem_format *x, const struct npumem_format *y,
		      struct npumem_format_result *result, struct npumem_error *error);
/* x * y: Q(m1+m2).(n1+n2). Only the minimum times the minimum is out of its range, one step above the largest. */
int npumem_format_mul(const struct npumem_format *x, const struct npumem_format *y,
		      struct npumem_format_result *result, struct npumem_error *error);
/* x / y by integer division: Q(m1-m2).(n1-n2), for divisors near the ends of their range; `every` holds all. */
int npumem_format_div(const struct npumem_format *x, const struct npumem_format *y,
		      struct npumem_format_result *result, struct npumem_error *error);
/* The sum of n values, n >= 1. */
int npumem_format_sum(const struct npumem_format *x, int64_t n, struct npumem_format_result *result,
		      struct npumem_error *error);

/* ---- accumulators ---- */

/* The sum of one accumulator: n products of data and weights, or n data if weights_dtype is 0; and a bias of the
 * weights' type, shifted left by data_frac_bits + weights_frac_bits - bias_frac_bits. frac_bits may be NPUMEM_ANY
 * (not known); those of data and weights are needed only for a bias with frac_bits. */
struct npumem_terms {
	int data_dtype;	   /* fx8 or fx16 */
	int weights_dtype; /* data_dtype; or fx8 with fx16 data; or 0: no products and no bias */
	int64_t data_frac_bits, weights_frac_bits;
	bool has_bias;
	int64_t bias_frac_bits; /* NPUMEM_ANY: the bias counts as one more product, as in the chapter */
	int64_t n;		/* 0..NPUMEM_PRODUCTS_MAX, without the bias */
	int64_t weights_sum;	/* the largest sum of |weights| of one output, in the container's integers; 0: not
				 * known */
};

/* Sets all frac_bits to NPUMEM_ANY and all other members to 0. */
void npumem_terms_init(struct npumem_terms *terms);

/* The range of an accumulator, and whether the total of its terms and the bias stays in it. */
struct npumem_bound {
	int accumulator_bits; /* 32 for fx8 data, 40 for fx16 data */
	int64_t low, high;    /* its range */
	int64_t safe;	      /* the largest number of products (or data) whose total is in range for all operands;
			       * -1: the bias alone can be out of range */
	int64_t safe_weights_sum; /* the largest sum of |weights| whose total is in range, for any number of
				   * weights; -1: as for safe, or there are no weights */
	int64_t least, most; /* the exact extremes of the total; the ends of int64_t if a bias is shifted beyond
			      * them */
	bool can_overflow;   /* the total is out of range for some operands */
	char breaks[NPUMEM_PATTERN_BYTES]; /* text: operands with which safe + 1 products are out of range, and
					    * their total */
};

/* 0, or INVALID: such types have no products, frac_bits are not in 0..127, the bias has more frac_bits than data
 * and weights together, or n or weights_sum is out of range; `bound` is then unchanged. */
int npumem_bound(const struct npumem_terms *terms, struct npumem_bound *bound, struct npumem_error *error);

/* ---- kernels ---- */

/* A kernel's tensor, by role. */
struct npumem_numeric_operand {
	const char *role;
	struct npumem_dims shape; /* as in npumem-kernels(7); a matrix is [rows, cols, 1, 1]; all 0: not given */
	int64_t frac_bits;	  /* NPUMEM_ANY: not given */
	int64_t weights_sum;	  /* for weights, as in struct npumem_terms; 0: not known */
};

/* A call of a kernel. If the operands have a bias, it counts; without frac_bits it counts as one more product. */
struct npumem_advise {
	const char *kernel;
	int data_dtype;
	int weights_dtype; /* 0: data_dtype */
	const struct npumem_numeric_operand *operands;
	unsigned n_operands;
	const struct npumem_param *params; /* the kernel's parameters */
	unsigned n_params;
};

/* One accumulator of a kernel. Most kernels have one; rnn_dense has one for each input, the recurrent cells have
 * one for the input and one for the previous output. */
struct npumem_sum {
	char data[NPUMEM_FIELD_KEY_BYTES]; /* the roles of its operands; empty: none */
	char weights[NPUMEM_FIELD_KEY_BYTES];
	char bias[NPUMEM_FIELD_KEY_BYTES];
	struct npumem_terms terms;
	struct npumem_bound bound;
	int64_t additions; /* n, and 1 for a bias */
	/* The chapter's estimate: ceil(log2 additions), the accumulator's bits in addition to a product's, and how
	 * many bits are missing. */
	int64_t extra_bits, available_bits, over_bits;
	bool possible; /* false: it can overflow with all frac_bits in 0..127 that leave a significant bit */
	int64_t give_up_data, give_up_weights; /* frac_bits to remove; 0 if it cannot overflow */
	int64_t data_frac_bits, weights_frac_bits, bias_frac_bits; /* what is left; NPUMEM_ANY: not known */
	char advice[NPUMEM_ADVICE_BYTES];			   /* the same as text */
};

struct npumem_advice {
	unsigned n_sums;
	struct npumem_sum sums[NPUMEM_SUMS_MAX];
	bool can_overflow; /* at least one of them can */
	/* has_out: out and all formats are given, and the kernel rounds its accumulators into out. Then saturates
	 * says whether results can be out of out's range, for all totals in the accumulators' range;
	 * safe_out_frac_bits is the largest number of frac_bits with which they cannot (NPUMEM_ANY: there is
	 * none).
	 */
	bool has_out;
	bool saturates;
	int64_t out_frac_bits, safe_out_frac_bits;
};

/* Computes for each accumulator of a kernel the number of products or data of one output, without taps in the
 * padding; whether the total can overflow; and how many frac_bits to remove so that it cannot. Half of them are
 * removed from each operand; an odd one from the data if they have more frac_bits than the weights, else from the
 * weights. If one operand has too few, the other gives the rest.
 * 0, or INVALID: the kernel has no sums, shapes do not match, or npumem_bound refuses; `advice` is then undefined.
 */
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
	struct npumem_format x, y;   /* for ADD, MUL, DIV; x for SUM */
	int64_t n;		     /* for SUM */
	struct npumem_terms terms;   /* for BOUND */
	struct npumem_advise advise; /* for ADVISE */
};

struct npumem_numeric_answer {
	enum npumem_numeric_kind kind;
	struct npumem_format_result result; /* of ADD, MUL, DIV, SUM */
	struct npumem_bound bound;
	struct npumem_advice advice;
};

/* Answers a question of any kind. Only the member of that kind is set in the answer. 0 or INVALID. */
int npumem_numeric(const struct npumem_numeric *question, struct npumem_numeric_answer *answer,
		   struct npumem_error *error);

#ifdef __cplusplus
}
#endif
#endif
