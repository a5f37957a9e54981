/* The search for a matrix's columns per channel (W). */
#ifndef FORMULAS_WIDTHS_H
#define FORMULAS_WIDTHS_H

#include <npumem/layout.h>

/* The widths of a matrix of `words_n` rows (in words) by `cols` that no other beats: one for each distinct
 * bytes_per_npu, least first, at most `most` of them; a tie goes to C <= X, then to the smallest W. Returns how
 * many. Sizes that do not fit are INT64_MAX. O(sqrt(cols)). */
unsigned widths_best(const struct npumem_geometry *geometry, int64_t start_npu, int64_t words_n, int64_t cols,
		     int64_t word_bytes, struct npumem_width *widths, unsigned most);

#endif
