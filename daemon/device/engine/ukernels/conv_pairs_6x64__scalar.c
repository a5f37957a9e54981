/* Plain C for every processor, and what the others are compared with: pairs of 16-bit terms. */
#include "daemon/device/engine/ukernel_plain.h"

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

const struct ukernel conv_pairs_6x64__scalar = {
	.name = "conv_pairs_6x64__scalar",
	.n_terms = 2,
	.weight_bytes = 2,
	.segment_min = 6,
	.rows = UKERNEL_ROWS,
	.speed = 1,
	.depth = 1,
	UKERNEL_PLAIN_MOVES,
	.pack = pack,
	.block = block,
	.widen = ukernel_plain_widen,
};
