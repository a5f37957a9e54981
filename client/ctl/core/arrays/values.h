/* Arrays as numbers: read, between real numbers and fixed point, compared. */
#ifndef CTL_CORE_ARRAYS_VALUES_H
#define CTL_CORE_ARRAYS_VALUES_H

#include <stdio.h>

#include <jansson.h>
#include <npumem/layout.h>

#include "client/ctl/core/arrays/stream.h"

/* values.c. An array of a file as numbers, whatever NumPy wrote it as: integers of 8 to 64 bits, float16 to
 * float64, of either byte order, C or Fortran order, .npy or in an .npz. */

struct values {
	unsigned n_dims;
	int64_t shape[NPY_DIMS_MAX];
	size_t n;
	bool is_real;
	int dtype;    /* the element type that holds them as they are; 0: none */
	double *data; /* dense, row-major */
};

/* Reads "FILE.npy", "FILE.npz", "FILE.npz:NAME" or "-", an .npy on stdin. `perm`: NULL, or as numpy.transpose has
 * it, "1,0,2,3": dimension i of the result is dimension perm[i] of the file. 0; INVALID, naming the file;
 * RESOURCE_EXHAUSTED. */
int values_read(const char *path, const char *perm, struct values *values, struct npumem_error *error);

/* True where a word is a file's name to values_read, and no tensor's. */
bool values_is_file(const char *word);

/* N,C,H,W: four dimensions as they are; C,H,W; two as [n,c,1,1]; one as [1,c,1,1], a bias. 0 or INVALID. */
int values_shape(const struct values *values, struct npumem_dims *shape, struct npumem_error *error);

/* Into the containers of a tensor's type: real numbers are rounded to fixed point (*saturated counts), or to fp32;
 * integers are those of the container. 0; INVALID: real numbers for integers, integers out of range or for fp32, a
 * NaN for fixed point; the message has the place. */
int values_encode(const struct values *values, int dtype, int64_t frac_bits, int rounding, void *containers,
		  int64_t *saturated, struct npumem_error *error);
/* Rows of numbers that line up, with a line of the index before each plane of the last two dimensions. `n_dims` 2
 * to 4. */
void values_print(FILE *out, const struct values *values);
/* Nested arrays of numbers; NaN and infinities are null. */
json_t *values_json(const struct values *values);
/* The other way: a tensor's containers as numbers; fixed point as real ones. `values` has n_dims, shape, n and
 * room for data. */
void values_decode(const void *containers, int dtype, int64_t frac_bits, struct values *values);

/* formats.c. Which frac_bits fit real numbers: what each candidate clips, and how far it is off. */

struct formats_candidate {
	int64_t frac_bits, clipped;
	double largest; /* error */
	double snr;	/* in dB; infinite where all is exact */
};

/* The most frac_bits with which nothing is clipped; all but the sign where everything is 0. 0, or INVALID: not
 * even 0 does, or there is a NaN. */
int formats_auto(const struct values *values, int dtype, int rounding, int64_t *frac_bits,
		 struct npumem_error *error);
void formats_judge(const struct values *values, int dtype, int64_t frac_bits, int rounding,
		   struct formats_candidate *candidate);
/* Of weights [K,M,...]: the largest sum of |weights| of one output, as integers of the format. `each`: an output
 * is an index of the first two dimensions (a cell's gates), not of the second alone. */
int64_t formats_weights_sum(const struct values *values, int dtype, int64_t frac_bits, int rounding, bool each);

/* compare.c. An array against the one that is expected, a piece at a time: the first element that differs, and how
 * much. */

struct compare {
	size_t n, n_differ, first; /* elements looked at; that differ; the index of the first of these */
	double is, expected;	   /* of the first, as numbers of the container */
	double largest;		   /* difference */
	double signal, noise;	   /* sums of squares: of the expected values, of the differences */
	double power, product;	   /* of what is, and of both */
};

/* The next n elements of both, of one element type. Starts with a zeroed struct. */
void compare_add(struct compare *compare, int dtype, const void *is, const void *expected, size_t n);
/* The same for expected integers that were rounded from `reals`: signal and noise are taken from the real numbers.
 */
void compare_add_reals(struct compare *compare, int dtype, int64_t frac_bits, const void *is, const void *expected,
		       const float *reals, size_t n);
/* Adds the result of comparing another array of the same shape. */
void compare_merge(struct compare *compare, const struct compare *other);
/* The same of numbers. */
void compare_add_numbers(struct compare *compare, const double *is, const double *expected, size_t n);
/* 1 where both point the same way, 0 where one is all zeros and the other not. */
double compare_cosine(const struct compare *compare);
/* Signal-to-noise ratio in dB; infinite where nothing differs. */
double compare_snr(const struct compare *compare);
/* Where the first that differs lies: its NPU, and the offset from the start of the tensor. */
void compare_locate(const struct compare *compare, const struct npumem_geometry *geometry,
		    const struct npumem_place *place, int64_t *npu, int64_t *offset);
/* "[0,3,2,1] is 5, 7 is expected (NPU 3, offset 136); 12 of 1600 differ, by up to 9; SNR 31.2 dB", where the array
 * lies at `place`. Returns `text`. */
const char *compare_text(const struct compare *compare, const struct npumem_geometry *geometry,
			 const struct npumem_place *place, char *text, size_t bytes);

#endif
