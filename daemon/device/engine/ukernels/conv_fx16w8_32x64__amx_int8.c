/* 16-bit data as bytes with weights of 8 bits: 2 x 16 outputs by the low and the high bytes of 16 pixels. Of
 * weights only the low bytes are read, as signed: the high ones are their signs. 16384 terms of 128 * 255 stay
 * below 2^31. */
#include "daemon/device/engine/ukernel_amx_fx16.h"

/* Tiles 0 and 1 are sums of low and high bytes, 2 and 3 the same of the lower outputs, 4 and 5 weights, 6 and 7
 * low and high bytes of pixels. */
static struct amx_config config_of(unsigned rows)
{
	unsigned upper = rows < AMX_ROWS ? rows : AMX_ROWS;
	struct amx_config config = {.palette = 1, .rows = {[6] = AMX_ROWS, [7] = AMX_ROWS}};
	config.rows[0] = config.rows[1] = config.rows[4] = (uint8_t)upper;
	config.rows[2] = config.rows[3] = config.rows[5] = (uint8_t)(rows - upper);
	for (unsigned i = 0; i < AMX_TILES; i++)
		config.row_bytes[i] = config.rows[i] ? AMX_ROW_BYTES : 0;
	return config;
}

/* `lower`: there are such outputs. */
UKERNEL_INLINE void sum(const uint32_t *offsets, int64_t n_steps, const uint8_t *data, const uint8_t *weights,
			unsigned rows, int32_t *sums, const bool lower)
{
	AMX_TILEZERO(0);
	AMX_TILEZERO(1);
	if (lower) {
		AMX_TILEZERO(2);
		AMX_TILEZERO(3);
	}
	for (int64_t k = 0; k < n_steps; k += UKERNEL_AMX_DEPTH, weights += rows * UKERNEL_AMX_PITCH) {
		int64_t stride = (int64_t)offsets[k + 1] - offsets[k];
		AMX_TILELOADD(4, weights, UKERNEL_AMX_PITCH);
		AMX_TILELOADD(6, data + offsets[k], stride);
		AMX_TDPBSUD(0, 4, 6);
		AMX_TILELOADD(7, data + offsets[k + UKERNEL_AMX_HIGH], stride);
		AMX_TDPBSSD(1, 4, 7);
		if (lower) {
			AMX_TILELOADD(5, weights + AMX_ROWS * UKERNEL_AMX_PITCH, UKERNEL_AMX_PITCH);
			AMX_TDPBSUD(2, 5, 6);
			AMX_TDPBSSD(3, 5, 7);
		}
	}
	AMX_TILESTORED(0, sums, AMX_ROW_BYTES);
	AMX_TILESTORED(1, sums + UKERNEL_AMX_TILE, AMX_ROW_BYTES);
	if (lower) {
		AMX_TILESTORED(2, sums + 2 * UKERNEL_AMX_TILE, AMX_ROW_BYTES);
		AMX_TILESTORED(3, sums + 3 * UKERNEL_AMX_TILE, AMX_ROW_BYTES);
	}
}

/* Two tiles of sums into one. */
static void combine(const int32_t *sums, unsigned rows, bool first, int64_t *wide)
{
	for (unsigned row = 0; row < rows; row++, sums += AMX_ROWS, wide += UKERNEL_COLUMNS)
		for (unsigned i = 0; i < AMX_ROWS; i += 8) {
			__m512i high = ukernel_widened(sums + UKERNEL_AMX_TILE + i);
			__m512i x = _mm512_add_epi64(ukernel_widened(sums + i), _mm512_slli_epi64(high, 8));
			if (!first)
				x = _mm512_add_epi64(x, _mm512_load_si512(wide + i));
			_mm512_store_si512(wide + i, x);
		}
}

static void block64(const uint32_t *offsets, int64_t n_steps, const uint8_t *data, const uint8_t *weights,
		    unsigned rows, unsigned n_columns, bool first, int64_t *wide)
{
	const struct amx_config config = config_of(rows);
	unsigned upper = rows < AMX_ROWS ? rows : AMX_ROWS;
	_Alignas(64) int32_t sums[4 * UKERNEL_AMX_TILE];
	amx_ldtilecfg(&config);
	for (unsigned i = 0; i < n_columns; i += UKERNEL_VECTOR, data += UKERNEL_VECTOR * UKERNEL_STEP_BYTES) {
		if (rows > upper)
			sum(offsets, n_steps, data, weights, rows, sums, true);
		else
			sum(offsets, n_steps, data, weights, rows, sums, false);
		combine(sums, upper, first, wide + i);
		combine(sums + 2 * UKERNEL_AMX_TILE, rows - upper, first, wide + AMX_ROWS * UKERNEL_COLUMNS + i);
	}
	amx_tilerelease();
}

const struct ukernel conv_fx16w8_32x64__amx_int8 = {
	.name = "conv_fx16w8_32x64__amx_int8",
	.n_terms = 4,
	.weight_bytes = 1,
	.rows = 2 * AMX_ROWS,
	.speed = 96,
	.depth = UKERNEL_AMX_DEPTH,
	.by_bytes = true,
	UKERNEL_AVX512_MOVES,
	.pack = ukernel_amx_pack16,
	.block64 = block64,
	.store64 = ukernel_avx512_store64,
};
