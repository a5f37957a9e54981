/* An array against the one that is expected, a piece at a time: the first element that differs, and how much. */
#ifndef CTL_CORE_NETWORK_COMPARE_H
#define CTL_CORE_NETWORK_COMPARE_H

#include <npumem/layout.h>

struct compare {
	size_t n, n_differ, first; /* elements looked at; that differ; the index of the first of these */
	double is, expected;	   /* of the first, as numbers of the container */
	double largest;		   /* difference */
	double signal, noise;	   /* sums of squares: of what is expected, of the differences */
	double power, product;	   /* of what is, and of both */
};

/* The next n elements of both, of one element type. Starts with a zeroed struct. */
void compare_add(struct compare *compare, int dtype, const void *is, const void *expected, size_t n);
/* The same for expected integers that were rounded from `reals`: signal and noise are taken from the real numbers. */
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
