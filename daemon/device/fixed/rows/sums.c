/* The joins one by one, and which formats the instruction sets' loops are for: those whose shifts keep everything
 * in 64 bits. */
#include "daemon/device/fixed/rows/sums.h"

#include "daemon/device/fixed/container.h"
#include "daemon/device/implementations.h"

enum { SUMS_SHIFT_MAX = 62, SUMS_BIAS_SHIFT_MAX = 45, SUMS_LEFT_MAX = 20 };

static void multi_one_by_one(const struct multi_sum *multi, const int64_t *sums, int64_t step,
			     const struct sums_bias *bias, int64_t n, void *out, struct sums_counts *counts)
{
	for (int64_t j = 0; j < n; j++)
		container_put(out, multi->bits == 32 ? 1 : 2, j,
			      multi_sum_join(multi, sums + j, step,
					     bias->data ? container_get(bias->data, bias->bytes, j) : 0,
					     &counts->saturated, &counts->wrapped));
}

static void rescaled_one_by_one(const struct rescaled_sum *rescaled, const int64_t *sums, int64_t step,
				const struct sums_bias *bias, int64_t n, void *out, struct sums_counts *counts)
{
	for (int64_t j = 0; j < n; j++)
		container_put(out, rescaled->result.bytes, j,
			      rescaled_sum_join(rescaled, sums[j], sums[step + j],
						bias->data ? container_get(bias->data, bias->bytes, j) : 0,
						&counts->saturated, &counts->wrapped));
}

const struct sums_functions sums__scalar = {multi_one_by_one, rescaled_one_by_one};

static bool is_ordinary(int64_t shift)
{
	return shift >= 0 && shift <= SUMS_SHIFT_MAX;
}

static bool multi_fits(const struct multi_sum *multi)
{
	for (unsigned i = 0; i < multi->n; i++)
		if (!is_ordinary(multi->shifts[i]))
			return false;
	return multi->bias_shift <= SUMS_BIAS_SHIFT_MAX;
}

static bool rescaled_fits(const struct rescaled_sum *rescaled)
{
	return is_ordinary(rescaled->result.shift) && rescaled->between <= SUMS_SHIFT_MAX &&
	       rescaled->between >= -SUMS_LEFT_MAX && rescaled->bias_shift <= SUMS_BIAS_SHIFT_MAX;
}

void sums_multi(enum isa isa, const struct multi_sum *multi, const int64_t *sums, int64_t step,
		const struct sums_bias *bias, int64_t n, void *out, struct sums_counts *counts)
{
	implementations[multi_fits(multi) ? isa : ISA_SCALAR].sums->multi(multi, sums, step, bias, n, out, counts);
}

void sums_rescaled(enum isa isa, const struct rescaled_sum *rescaled, const int64_t *sums, int64_t step,
		   const struct sums_bias *bias, int64_t n, void *out, struct sums_counts *counts)
{
	implementations[rescaled_fits(rescaled) ? isa : ISA_SCALAR].sums->rescaled(rescaled, sums, step, bias, n,
										   out, counts);
}
