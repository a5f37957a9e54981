/* 8-bit data and weights by vpdpbusd, which takes data as 0 to 255. */
#include "daemon/device/engine/ukernel_avx512_fx8.h"

static void pack(unsigned bytes, const void *const *lines, int64_t n, int64_t high_off, uint8_t *to)
{
	(void)high_off;
	(void)bytes;
	ukernel_avx512_pack8(lines, n, 0x80, to);
}

UKERNEL_AVX512_BLOCK(_mm512_dpbusd_epi32)

const struct ukernel conv_fx8_6x64__avx512vnni = {
	.name = "conv_fx8_6x64__avx512vnni",
	.n_terms = 4,
	.weight_bytes = 1,
	.rows = UKERNEL_ROWS,
	.speed = 192,
	.depth = 1,
	.unsigned_data = true,
	UKERNEL_AVX512_MOVES,
	.pack = pack,
	.block = block,
	.widen = ukernel_plain_widen,
	.store32 = ukernel_avx512_store8,
};
