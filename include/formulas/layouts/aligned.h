/* The block size of the aligned layout, which the matrix layout and the search for its width use too. */
#ifndef FORMULAS_LAYOUTS_ALIGNED_H
#define FORMULAS_LAYOUTS_ALIGNED_H

#include <npumem/layout.h>

/* Bytes that a feature of `words` words takes: a multiple of the EU bytes, and of a word where that is larger.
 * INT64_MAX where it does not fit. */
int64_t aligned_block_bytes(const struct npumem_geometry *geometry, int64_t words, int64_t word_bytes);

/* set_stride of a layout_row. */
int aligned_stride(const struct npumem_geometry *geometry, const struct npumem_spec *spec,
		   struct npumem_place *place, struct npumem_error *error);

#endif
