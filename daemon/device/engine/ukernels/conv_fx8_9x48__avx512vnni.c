/* 8-bit data and weights by vpdpbusd, which takes data as 0 to 255; rows are pixels. */
#include "daemon/device/engine/ukernel_avx512_pixels.h"

UKERNEL_AVX512_PIXELS(_mm512_dpbusd_epi32)

const struct ukernel conv_fx8_9x48__avx512vnni = {
	.name = "conv_fx8_9x48__avx512vnni",
	.n_terms = 4,
	.weight_bytes = 1,
	.depth = 1,
	.unsigned_data = true,
	.pixels = pixels,
	.turn = ukernel_avx512_turn,
};
