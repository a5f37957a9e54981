/* 16-bit data and weights as bytes: low and high ones of the weights are two tiles of A, those
 * of 16 pixels two of B, and their four products have sums of their own. 16384 terms, which is what
 * UKERNEL_STEPS_MAX steps have, of 255 * 255 stay below 2^31. */
#include "daemon/device/engine/ukernel_amx_fx16.h"

/* Tiles 0 to 3 are sums, 4 and 5 low and high bytes of weights, 6 and 7 those of pixels. */
static struct amx_config config_of(unsigned rows)
{
	struct amx_config config = {.palette = 1};
	for (unsigned i = 0; i < AMX_TILES; i++) {
		config.rows[i] = (uint8_t)(i < 6 ? rows : AMX_ROWS);
		config.row_bytes[i] = AMX_ROW_BYTES;
	}
	return config;
}

/* Of 16 pixels: low by low, low weights by high pixels, high by low, high by high. */
static void sum(const uint32_t *offsets, int64_t n_steps, const uint8_t *data, const uint8_t *weights,
		unsigned rows, int32_t *sums)
{
	AMX_TILEZERO(0);
	AMX_TILEZERO(1);
	AMX_TILEZERO(2);
	AMX_TILEZERO(3);
	for (int64_t k = 0; k < n_steps; k += UKERNEL_AMX_DEPTH, weights += rows * UKERNEL_AMX_PITCH) {
		int64_t stride = (int64_t)offsets[k + 1] - offsets[k];
		AMX_TILELOADD(4, weights, UKERNEL_AMX_PITCH);
		AMX_TILELOADD(6, data + offsets[k], stride);
		AMX_TDPBUUD(0, 4, 6);
		AMX_TILELOADD(7, data + offsets[k + UKERNEL_AMX_HIGH], stride);
		AMX_TDPBUSD(1, 4, 7);
		AMX_TILELOADD(5, weights + AMX_ROW_BYTES, UKERNEL_AMX_PITCH);
		AMX_TDPBSUD(2, 5, 6);
		AMX_TDPBSSD(3, 5, 7);
	}
	AMX_TILESTORED(0, sums, AMX_ROW_BYTES);
	AMX_TILESTORED(1, sums + UKERNEL_AMX_TILE, AMX_ROW_BYTES);
	AMX_TILESTORED(2, sums + 2 * UKERNEL_AMX_TILE, AMX_ROW_BYTES);
	AMX_TILESTORED(3, sums + 3 * UKERNEL_AMX_TILE, AMX_ROW_BYTES);
}

/* The four tiles of sums into one. */
static void combine(const int32_t *sums, unsigned rows, bool first, int64_t *wide)
{
	for (unsigned row = 0; row < rows; row++, sums += AMX_ROWS, wide += UKERNEL_COLUMNS)
		for (unsigned i = 0; i < AMX_ROWS; i += 8) {
			__m512i middle = _mm512_add_epi64(ukernel_widened(sums + UKERNEL_AMX_TILE + i),
							  ukernel_widened(sums + 2 * UKERNEL_AMX_TILE + i));
			__m512i x = _mm512_add_epi64(ukernel_widened(sums + i), _mm512_slli_epi64(middle, 8));
			x = _mm512_add_epi64(
				x, _mm512_slli_epi64(ukernel_widened(sums + 3 * UKERNEL_AMX_TILE + i), 16));
			if (!first)
				x = _mm512_add_epi64(x, _mm512_load_si512(wide + i));
			_mm512_store_si512(wide + i, x);
		}
}

static void block64(const uint32_t *offsets, int64_t n_steps, const uint8_t *data, const uint8_t *weights,
		    unsigned rows, unsigned n_columns, bool first, int64_t *wide)
{
	const struct amx_config config = config_of(rows);
	_Alignas(64) int32_t sums[4 * UKERNEL_AMX_TILE];
	amx_ldtilecfg(&config);
	for (unsigned i = 0; i < n_columns; i += UKERNEL_VECTOR) {
		sum(offsets, n_steps, data + i * UKERNEL_STEP_BYTES, weights, rows, sums);
		combine(sums, rows, first, wide + i);
	}
	amx_tilerelease();
}

const struct ukernel conv_fx16_16x64__amx_int8 = {
	.name = "conv_fx16_16x64__amx_int8",
	.n_terms = 4,
	.weight_bytes = 1,
	.rows = AMX_ROWS,
	.speed = 64,
	.depth = UKERNEL_AMX_DEPTH,
	.by_bytes = true,
	UKERNEL_AVX512_MOVES,
	.pack = ukernel_amx_pack16,
	.block64 = block64,
	.store64 = ukernel_avx512_store64,
};
