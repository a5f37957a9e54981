/* 16-bit data with weights of 16 or 8 bits by vpdpwssd; rows are pixels. */
#include "daemon/device/engine/ukernel_avx512_pixels.h"

UKERNEL_AVX512_PIXELS(_mm512_dpwssd_epi32)

const struct ukernel conv_fx16_9x48__avx512vnni = {
	.name = "conv_fx16_9x48__avx512vnni",
	.n_terms = 2,
	.weight_bytes = 2,
	.depth = 1,
	.pixels = pixels,
	.turn = ukernel_avx512_turn,
};
