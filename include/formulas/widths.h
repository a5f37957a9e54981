/* The search for a matrix's columns per channel (W). */
#ifndef FORMULAS_WIDTHS_H
#define FORMULAS_WIDTHS_H

#include <npumem/layout.h>

/* Of the widths of a matrix of `words_n` rows (in words) by `cols` the one that needs the fewest bytes per NPU; a
 * tie goes to C <= X, then to the smallest W. Sizes that do not fit are INT64_MAX. */
struct npumem_width widths_best(const struct npumem_geometry *geometry, int64_t start_npu, int64_t words_n,
				int64_t cols, int64_t word_bytes);

/* The best for each distinct bytes_per_npu, least first, at most `most` of them. Returns how many. O(sqrt(cols)).
 */
unsigned widths_table(const struct npumem_geometry *geometry, int64_t start_npu, int64_t words_n, int64_t cols,
		      int64_t word_bytes, struct npumem_width *widths, unsigned most);

#endif
