/* 8-bit data and weights by vpdpbusd, which takes data as 0 to 255. */
#include "daemon/device/engine/ukernel_avx512_fx8.h"

extern const struct ukernel conv_fx8_6x64__avx512vnni;

static void spread(unsigned bytes, const void *from, int64_t from_row, int64_t step, void *to, int64_t to_row,
		   int64_t n_rows, int64_t n)
{
	ukernel_avx512_spread(bytes, from, from_row, step, to, to_row, n_rows, n);
}

static void pack(unsigned bytes, const void *const *lines, int64_t n, int64_t high_off, uint8_t *to)
{
	(void)high_off;
	(void)bytes;
	ukernel_avx512_pack8(lines, n, 0x80, to);
}

UKERNEL_AVX512_BLOCK(_mm512_dpbusd_epi32)

static void widen(const int32_t *sums, unsigned rows, unsigned n_columns, unsigned shift, bool first,
		  int64_t *wide)
{
	ukernel_plain_widen(sums, rows, n_columns, shift, first, wide);
}

static int64_t store32(const struct ukernel_result *result, const struct ukernel_strip *strip, unsigned rows,
		       const int32_t *sums)
{
	return ukernel_avx512_store8(result, strip, rows, sums);
}

static void scatter(unsigned bytes, const void *from, void *to, int64_t step, int64_t n)
{
	ukernel_avx512_scatter(bytes, from, to, step, n);
}

const struct ukernel conv_fx8_6x64__avx512vnni = {
	.name = "conv_fx8_6x64__avx512vnni",
	.n_terms = 4,
	.weight_bytes = 1,
	.rows = UKERNEL_ROWS,
	.depth = 1,
	.unsigned_data = true,
	.spread = spread,
	.scatter = scatter,
	.pack = pack,
	.block = block,
	.widen = widen,
	.store32 = store32,
};
