/* Pairs of 16-bit terms by smlal, which multiplies four words by one into 32 bits. A load that takes pairs apart
 * leaves the first words of 8 pixels in one vector and the second ones in another. 24 vectors of sums, 4 of pixels
 * and the weights are 29 of 32 registers. */
#include <arm_neon.h>

#include "daemon/device/engine/ukernel_plain.h"

enum { COLUMNS = 16, VECTORS = 4 };

static void pack(unsigned bytes, const void *const *lines, int64_t n, int64_t high_off, uint8_t *to)
{
	(void)high_off;
	ukernel_plain_pairs(bytes, lines, 0, n, to);
}

UKERNEL_INLINE void sum(const uint32_t *offsets, int64_t n_steps, const uint8_t *data, const uint8_t *weights,
			int32_t *sums, const unsigned rows)
{
	int32x4_t acc[UKERNEL_ROWS][VECTORS];
	UKERNEL_UNROLL
	for (unsigned r = 0; r < rows; r++)
		acc[r][0] = acc[r][1] = acc[r][2] = acc[r][3] = vdupq_n_s32(0);
	for (int64_t k = 0; k < n_steps; k++, weights += UKERNEL_STEP_BYTES * rows) {
		const int16_t *at = (const int16_t *)(data + offsets[k]), *pair = (const int16_t *)weights;
		int16x8x2_t x = vld2q_s16(at), y = vld2q_s16(at + COLUMNS);
		UKERNEL_UNROLL
		for (unsigned r = 0; r < rows; r++) {
			UKERNEL_UNROLL
			for (unsigned j = 0; j < 2; j++) {
				int16x8_t w = vdupq_n_s16(pair[2 * r + j]);
				acc[r][0] = vmlal_s16(acc[r][0], vget_low_s16(x.val[j]), vget_low_s16(w));
				acc[r][1] = vmlal_high_s16(acc[r][1], x.val[j], w);
				acc[r][2] = vmlal_s16(acc[r][2], vget_low_s16(y.val[j]), vget_low_s16(w));
				acc[r][3] = vmlal_high_s16(acc[r][3], y.val[j], w);
			}
		}
	}
	UKERNEL_UNROLL
	for (unsigned r = 0; r < rows; r++) {
		UKERNEL_UNROLL
		for (unsigned v = 0; v < VECTORS; v++)
			vst1q_s32(sums + r * UKERNEL_COLUMNS + 4 * v, acc[r][v]);
	}
}

UKERNEL_BLOCK_OF_ROWS(COLUMNS)

const struct ukernel conv_pairs_6x16__neon = {
	.name = "conv_pairs_6x16__neon",
	.n_terms = 2,
	.weight_bytes = 2,
	.segment_min = 6,
	.rows = UKERNEL_ROWS,
	.speed = 8,
	.depth = 1,
	UKERNEL_PLAIN_MOVES,
	.pack = pack,
	.block = block,
	.widen = ukernel_plain_widen,
};
