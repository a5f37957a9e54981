/* The ways to place a golden vector's tensors: the answer must be the same in all of them. */
#ifndef CTL_CORE_VARIANT_H
#define CTL_CORE_VARIANT_H

#include "client/ctl/core/vectors/mapping.h"

struct variant {
	int layout, mode;
	int64_t start_npu;
};

/* The spec of one tensor in this variant. What it cannot take (a mode of another width, a matrix of more than two
 * dimensions, strides that do not fit an NPU) it does without. */
void variant_spec(const struct variant *variant, const struct npumem_geometry *geometry,
		  const struct vectors_tensor *tensor, const struct mapping *mapping, struct npumem_spec *spec);

/* The same for any tensor: `plain` has type, frac_bits, shape, and the mode that it keeps, or 0. */
void variant_place(const struct variant *variant, const struct npumem_geometry *geometry,
		   const struct npumem_spec *plain, struct npumem_spec *spec);

/* "[compact, start NPU 3, 4n]". */
const char *variant_text(const struct variant *variant, char *text, size_t bytes);

#endif
