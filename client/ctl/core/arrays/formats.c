/* Fixed-point formats against the numbers that they are to hold. Owns nothing; values have no NaN past
 * formats_auto.
 */
#include "client/ctl/core/arrays/values.h"

#include <math.h>
#include <stdlib.h>

#include "client/ctl/core/arrays/stream.h"
#include "client/ctl/core/memory.h"

int formats_auto(const struct values *values, int dtype, int rounding, int64_t *frac_bits,
		 struct npumem_error *error)
{
	int64_t low, high, clipped = 0;
	double least = 0, most = 0;
	npumem_dtype_range(dtype, &low, &high);
	for (size_t i = 0; i < values->n; i++) {
		if (isnan(values->data[i]))
			return npumem_error_set(error, NPUMEM_INVALID,
						"element %zu is NaN, which has no fixed-point value", i);
		least = fmin(least, values->data[i]);
		most = fmax(most, values->data[i]);
	}
	*frac_bits = 8 * npumem_dtype_bytes(dtype) - 1;
	if (least >= 0 && most <= 0)
		return 0;
	for (*frac_bits = NPUMEM_FRAC_BITS_MAX; *frac_bits >= 0; --*frac_bits) {
		clipped = 0;
		quantize_one(least, *frac_bits, rounding, low, high, &clipped);
		quantize_one(most, *frac_bits, rounding, low, high, &clipped);
		if (!clipped)
			return 0;
	}
	return npumem_error_set(error, NPUMEM_INVALID,
				"%s holds no number from %.9g to %.9g without clipping, whatever its frac_bits",
				npumem_dtype_name(dtype), least, most);
}

void formats_judge(const struct values *values, int dtype, int64_t frac_bits, int rounding,
		   struct formats_candidate *candidate)
{
	int64_t low, high;
	double signal = 0, noise = 0;
	npumem_dtype_range(dtype, &low, &high);
	*candidate = (struct formats_candidate){.frac_bits = frac_bits};
	for (size_t i = 0; i < values->n; i++) {
		double real = values->data[i];
		int64_t fixed = quantize_one(real, frac_bits, rounding, low, high, &candidate->clipped);
		double error = fabs(ldexp((double)fixed, -(int)frac_bits) - real);
		candidate->largest = fmax(candidate->largest, error);
		signal += real * real;
		noise += error * error;
	}
	candidate->snr = noise > 0 ? 10 * log10(signal / noise) : INFINITY;
}

int64_t formats_weights_sum(const struct values *values, int dtype, int64_t frac_bits, int rounding, bool each)
{
	int64_t low, high, largest = 0, ignored = 0;
	struct npumem_dims shape;
	npumem_dtype_range(dtype, &low, &high);
	if (values_shape(values, &shape, NULL))
		return 0;
	int64_t n_outputs = each ? shape.n * shape.c : shape.c;
	int64_t *sums = memory_new((size_t)n_outputs, sizeof(*sums));
	for (size_t i = 0; i < values->n; i++) {
		int64_t row = (int64_t)i / (shape.h * shape.w), output = each ? row : row % shape.c;
		sums[output] += llabs(quantize_one(values->data[i], frac_bits, rounding, low, high, &ignored));
		largest = sums[output] > largest ? sums[output] : largest;
	}
	memory_free(sums);
	return largest;
}
