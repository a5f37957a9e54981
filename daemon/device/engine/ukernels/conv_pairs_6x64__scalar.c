/* Plain C for every processor, and what the others are compared with: pairs of 16-bit terms. */
#include "daemon/device/engine/ukernel_plain.h"

extern const struct ukernel conv_pairs_6x64__scalar;

static void spread(unsigned bytes, const void *from, int64_t from_row, int64_t step, void *to, int64_t to_row,
		   int64_t n_rows, int64_t n)
{
	ukernel_plain_spread(bytes, from, from_row, step, to, to_row, n_rows, n);
}

static void pack(unsigned bytes, const void *const *lines, int64_t n, int64_t high_off, uint8_t *to)
{
	(void)high_off;
	ukernel_plain_pairs(bytes, lines, 0, n, to);
}

static void block(const uint32_t *offsets, int64_t n_steps, const uint8_t *data, const uint8_t *weights,
		  unsigned rows, unsigned n_columns, int32_t *sums)
{
	const int16_t *w = (const int16_t *)weights;
	memset(sums, 0, rows * UKERNEL_COLUMNS * sizeof(*sums));
	for (int64_t k = 0; k < n_steps; k++) {
		const int16_t *pairs = (const int16_t *)(data + offsets[k]);
		for (unsigned row = 0; row < rows; row++, w += 2) {
			uint32_t *to = (uint32_t *)sums + row * UKERNEL_COLUMNS;
			/* Two of (-32768)^2 are 2^31, which wraps. */
			for (unsigned i = 0; i < n_columns; i++)
				to[i] += (uint32_t)(pairs[2 * i] * w[0]) + (uint32_t)(pairs[2 * i + 1] * w[1]);
		}
	}
}

static void widen(const int32_t *sums, unsigned rows, unsigned n_columns, unsigned shift, bool first,
		  int64_t *wide)
{
	ukernel_plain_widen(sums, rows, n_columns, shift, first, wide);
}

static void scatter(unsigned bytes, const void *from, void *to, int64_t step, int64_t n)
{
	ukernel_plain_scatter(bytes, from, to, step, n);
}

const struct ukernel conv_pairs_6x64__scalar = {
	.name = "conv_pairs_6x64__scalar",
	.n_terms = 2,
	.weight_bytes = 2,
	.rows = UKERNEL_ROWS,
	.depth = 1,
	.spread = spread,
	.scatter = scatter,
	.pack = pack,
	.block = block,
	.widen = widen,
};
