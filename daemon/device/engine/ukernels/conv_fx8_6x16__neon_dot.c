/* 8-bit data and weights by sdot: four products to each of four sums. Registers as in conv_pairs_6x16__neon.c. */
#include <arm_neon.h>

#include "daemon/device/engine/ukernel_plain.h"

enum { COLUMNS = 16, VECTORS = 4 };

static void pack(unsigned bytes, const void *const *lines, int64_t n, int64_t high_off, uint8_t *to)
{
	(void)bytes, (void)high_off;
	int64_t end = (n + UKERNEL_COLUMNS - 1) / UKERNEL_COLUMNS * UKERNEL_COLUMNS, i = 0;
	for (; i + 16 <= n; i += 16) {
		uint8x16x4_t x;
		UKERNEL_UNROLL
		for (unsigned j = 0; j < 4; j++)
			x.val[j] = vld1q_u8((const uint8_t *)lines[j] + i);
		vst4q_u8(to + UKERNEL_STEP_BYTES * i, x);
	}
	for (; i < n; i++)
		for (unsigned j = 0; j < 4; j++)
			to[UKERNEL_STEP_BYTES * i + j] = ((const uint8_t *)lines[j])[i];
	memset(to + UKERNEL_STEP_BYTES * n, 0, (size_t)(end - n) * UKERNEL_STEP_BYTES);
}

UKERNEL_INLINE void sum(const uint32_t *offsets, int64_t n_steps, const uint8_t *data, const uint8_t *weights,
			int32_t *sums, const unsigned rows)
{
	int32x4_t acc[UKERNEL_ROWS][VECTORS];
	UKERNEL_UNROLL
	for (unsigned r = 0; r < rows; r++)
		acc[r][0] = acc[r][1] = acc[r][2] = acc[r][3] = vdupq_n_s32(0);
	for (int64_t k = 0; k < n_steps; k++, weights += UKERNEL_STEP_BYTES * rows) {
		int8x16_t x[VECTORS];
		UKERNEL_UNROLL
		for (unsigned v = 0; v < VECTORS; v++)
			x[v] = vld1q_s8((const int8_t *)data + offsets[k] + 16 * v);
		UKERNEL_UNROLL
		for (unsigned r = 0; r < rows; r++) {
			int32_t four;
			memcpy(&four, weights + 4 * r, sizeof(four));
			UKERNEL_UNROLL
			for (unsigned v = 0; v < VECTORS; v++)
				acc[r][v] = vdotq_s32(acc[r][v], x[v], vreinterpretq_s8_s32(vdupq_n_s32(four)));
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

const struct ukernel conv_fx8_6x16__neon_dot = {
	.name = "conv_fx8_6x16__neon_dot",
	.n_terms = 4,
	.weight_bytes = 1,
	.rows = UKERNEL_ROWS,
	.speed = 32,
	.depth = 1,
	UKERNEL_PLAIN_MOVES,
	.pack = pack,
	.block = block,
	.widen = ukernel_plain_widen,
};
