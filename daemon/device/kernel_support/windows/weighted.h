/* Kernels that multiply data with weights and add a bias: their types, formats, accumulator and result.
 * Types: fx8; fx16; fx16 data with fx8 weights. The bias has the weights' type, out the data's; or fx16 of fx8
 * data. */
#ifndef DEVICE_WEIGHTED_H
#define DEVICE_WEIGHTED_H

#include "daemon/device/fixed/accumulator.h"
#include "daemon/device/operations/kernel.h"

/* The places of the roles in the kernel's row. */
struct weighted_roles {
	unsigned data, weights, bias, out;
	bool widens; /* out may be fx16 where data is fx8 */
};

/* Types and frac_bits, and n_products (what one sum adds up) against the accumulator's model: 0 or INVALID. */
int weighted_check(const struct kernel_call *call, const struct weighted_roles *roles, int64_t n_products,
		   struct npumem_error *error);

struct weighted {
	unsigned data_bytes, weight_bytes; /* accumulator.result has those of out */
	struct accumulator accumulator;
	int bias_dtype;
	const void *bias; /* NULL: none */
};

/* Reads relu= as well. */
void weighted_init(struct weighted *weighted, const struct kernel_call *call, const struct weighted_roles *roles,
		   int64_t n_products);
/* Takes the bias that the call has by now, where weighted_init was for a plan. */
void weighted_load(struct weighted *weighted, const struct kernel_call *call, const struct weighted_roles *roles);

/* Element i of data or weights, of `bytes` each. */
static inline int32_t weighted_element(const void *elements, unsigned bytes, int64_t i)
{
	return bytes == 1 ? ((const int8_t *)elements)[i] : ((const int16_t *)elements)[i];
}

/* The largest magnitude of n biases as the accumulator has it; more than any where it is shifted too far. */
int64_t weighted_most_bias(const struct weighted *weighted, enum isa isa, int64_t n);
/* Finishes n sums that share the bias of output channel `channel`. */
void weighted_finish_channel(const struct weighted *weighted, void *sums, int64_t n, int64_t channel, void *out,
			     struct kernel_counts *counts);
/* Finishes n sums, one of each output channel from `channel` on. */
void weighted_finish_channels(const struct weighted *weighted, void *sums, int64_t n, int64_t channel, void *out,
			      struct kernel_counts *counts);

#endif
