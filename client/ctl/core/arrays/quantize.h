/* Between real numbers and fixed point: fx = Round(real * 2^frac_bits), real = fx / 2^frac_bits
 * ("Data Format Conversion" of the vendor's fixed-point text). */
#ifndef CTL_CORE_QUANTIZE_H
#define CTL_CORE_QUANTIZE_H

#include <stddef.h>

#include <npumem/types.h>

/* One number, rounded by `rounding` and then saturated to [low, high]; *saturated is raised where that changed it.
 * `real` is no NaN. */
int64_t quantize_one(double real, int64_t frac_bits, int rounding, int64_t low, int64_t high, int64_t *saturated);

/* n numbers, float32 or float64, into the containers of fx8 or fx16. 0, or INVALID for a NaN, whose index is then
 * in *nan_at. */
int quantize_array(const void *reals, bool is_double, size_t n, int dtype, int64_t frac_bits, int rounding,
		   void *containers, int64_t *saturated, size_t *nan_at);
/* The other way, exact. */
void quantize_back(const void *containers, size_t n, int dtype, int64_t frac_bits, float *reals);

#endif
