/* The search for a matrix's columns per channel. Among the widths that give the same number of channels the
 * smallest needs least, so only those are looked at: about 2 * sqrt(cols) of them. */
#include <string.h>

#include "include/formulas/layouts/aligned.h"
#include "include/formulas/sizes.h"
#include "include/formulas/widths.h"

/* "It is suggested that W should be moderately small for using more NPUs, but C is better not greater than the
 * number of NPUs": of two that need the same, C <= X, then the smaller W. */
static bool better(const struct npumem_geometry *geometry, const struct npumem_width *a,
		   const struct npumem_width *b)
{
	bool a_fits = a->channels <= geometry->n_npus;
	bool b_fits = b->channels <= geometry->n_npus;
	return a_fits != b_fits ? a_fits : a->w < b->w;
}

static unsigned insert(const struct npumem_geometry *geometry, const struct npumem_width *width,
		       struct npumem_width *widths, unsigned n, unsigned most)
{
	unsigned i = 0;
	while (i < n && widths[i].bytes_per_npu < width->bytes_per_npu)
		i++;
	if (i < n && widths[i].bytes_per_npu == width->bytes_per_npu) {
		if (better(geometry, width, &widths[i]))
			widths[i] = *width;
		return n;
	}
	if (i == most)
		return n;
	unsigned kept = n < most ? n : most - 1;
	memmove(&widths[i + 1], &widths[i], (kept - i) * sizeof(*widths));
	widths[i] = *width;
	return kept + 1;
}

unsigned widths_best(const struct npumem_geometry *geometry, int64_t start_npu, int64_t words_n, int64_t cols,
		     int64_t word_bytes, struct npumem_width *widths, unsigned most)
{
	unsigned n = 0;
	for (int64_t w = 1;;) {
		int64_t channels = sizes_ceil_div(cols, w);
		int64_t rows = npumem_channels_per_npu(geometry->n_npus, start_npu, channels);
		int64_t block = aligned_block_bytes(geometry, w, word_bytes);
		struct npumem_width width = {
			.w = w,
			.channels = channels,
			.channels_per_npu = rows,
			.bytes_per_npu = sizes_mul(sizes_mul(words_n, rows), block),
		};
		n = insert(geometry, &width, widths, n, most);
		if (channels == 1)
			return n;
		w = sizes_ceil_div(cols, channels - 1);
	}
}
