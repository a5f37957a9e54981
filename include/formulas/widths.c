/* The searches for a matrix's columns per channel. */
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

static struct npumem_width measure(const struct npumem_geometry *geometry, int64_t start_npu, int64_t words_n,
				   int64_t cols, int64_t word_bytes, int64_t w)
{
	int64_t channels = sizes_ceil_div(cols, w);
	int64_t rows = npumem_channels_per_npu(geometry->n_npus, start_npu, channels);
	int64_t block = aligned_block_bytes(geometry, w, word_bytes);

	return (struct npumem_width){
		.w = w,
		.channels = channels,
		.channels_per_npu = rows,
		.bytes_per_npu = sizes_mul(sizes_mul(words_n, rows), block),
	};
}

/* The smallest width that needs so many block rows: NPUs before the start NPU have nothing in the first. */
static int64_t width_of_rows(const struct npumem_geometry *geometry, int64_t start_npu, int64_t cols, int64_t rows)
{
	return sizes_ceil_div(cols, rows * geometry->n_npus - start_npu);
}

/* Let a matrix row need B blocks of the smallest size. Channels of b such blocks each, in r block rows, have room
 * for (r X - start) b >= B of them. So r b >= (B + start b) / X >= (B + start) / X, which b = 1 reaches: no width
 * needs less than that of one smallest block. */
struct npumem_width widths_best(const struct npumem_geometry *geometry, int64_t start_npu, int64_t words_n,
				int64_t cols, int64_t word_bytes)
{
	int64_t most = aligned_block_bytes(geometry, 1, word_bytes) / word_bytes;
	int64_t channels = sizes_ceil_div(cols, most < cols ? most : cols);
	int64_t rows = npumem_channels_per_npu(geometry->n_npus, start_npu, channels);
	/* A tie goes to C <= X: in two block rows at most, and in one, the smallest width of each. */
	const int64_t ties[] = {
		sizes_ceil_div(cols, geometry->n_npus),
		width_of_rows(geometry, start_npu, cols, 1),
	};
	struct npumem_width least = measure(geometry, start_npu, words_n, cols, word_bytes,
					    width_of_rows(geometry, start_npu, cols, rows));

	for (unsigned i = 0; i < sizeof(ties) / sizeof(ties[0]); i++) {
		struct npumem_width width = measure(geometry, start_npu, words_n, cols, word_bytes, ties[i]);

		if (width.bytes_per_npu == least.bytes_per_npu)
			return width;
	}
	return least;
}

unsigned widths_table(const struct npumem_geometry *geometry, int64_t start_npu, int64_t words_n, int64_t cols,
		      int64_t word_bytes, struct npumem_width *widths, unsigned most)
{
	unsigned n = 0;
	for (int64_t w = 1;;) {
		struct npumem_width width = measure(geometry, start_npu, words_n, cols, word_bytes, w);
		n = insert(geometry, &width, widths, n, most);
		if (width.channels == 1)
			return n;
		w = sizes_ceil_div(cols, width.channels - 1);
	}
}
