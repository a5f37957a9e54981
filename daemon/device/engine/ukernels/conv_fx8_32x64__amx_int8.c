/* 8-bit data and weights by tdpbssd: weights are A, a row for each output channel, and 16 packed lines of 16
 * pixels are B as they lie. 2 x 2 tiles of sums, so that each that is loaded is used twice. */
#include "daemon/device/engine/amx.h"
#include "daemon/device/engine/ukernel_avx512_fx8.h"

enum {
	ROWS = 2 * AMX_ROWS,
	DEPTH = AMX_ROW_BYTES / UKERNEL_STEP_BYTES,
	ROW_BYTES = UKERNEL_COLUMNS * 4, /* of sums */
};

static void pack(unsigned bytes, const void *const *lines, int64_t n, int64_t high_off, uint8_t *to)
{
	(void)high_off;
	(void)bytes;
	ukernel_avx512_pack8(lines, n, 0, to);
}

/* Tiles 0 to 3 are sums (1 and 3 the right ones, 2 and 3 the lower ones), 4 and 5 weights, 6 and 7 pixels. */
static struct amx_config config_of(unsigned rows)
{
	unsigned upper = rows < AMX_ROWS ? rows : AMX_ROWS;
	struct amx_config config = {.palette = 1, .rows = {[6] = DEPTH, [7] = DEPTH}};
	config.rows[0] = config.rows[1] = config.rows[4] = (uint8_t)upper;
	config.rows[2] = config.rows[3] = config.rows[5] = (uint8_t)(rows - upper);
	for (unsigned i = 0; i < AMX_TILES; i++)
		config.row_bytes[i] = config.rows[i] ? AMX_ROW_BYTES : 0;
	return config;
}

/* `lower`, `right`: there are such tiles. */
UKERNEL_INLINE void sum(const uint32_t *offsets, int64_t n_steps, const uint8_t *data, const uint8_t *weights,
			unsigned rows, int32_t *sums, const bool lower, const bool right)
{
	AMX_TILEZERO(0);
	if (right)
		AMX_TILEZERO(1);
	if (lower)
		AMX_TILEZERO(2);
	if (lower && right)
		AMX_TILEZERO(3);
	for (int64_t k = 0; k < n_steps; k += DEPTH, weights += rows * AMX_ROW_BYTES) {
		const uint8_t *at = data + offsets[k];
		int64_t stride = (int64_t)offsets[k + 1] - offsets[k];
		AMX_TILELOADD(4, weights, AMX_ROW_BYTES);
		AMX_TILELOADD(6, at, stride);
		AMX_TDPBSSD(0, 4, 6);
		if (right) {
			AMX_TILELOADD(7, at + AMX_ROW_BYTES, stride);
			AMX_TDPBSSD(1, 4, 7);
		}
		if (lower) {
			AMX_TILELOADD(5, weights + AMX_ROWS * AMX_ROW_BYTES, AMX_ROW_BYTES);
			AMX_TDPBSSD(2, 5, 6);
		}
		if (lower && right)
			AMX_TDPBSSD(3, 5, 7);
	}
	AMX_TILESTORED(0, sums, ROW_BYTES);
	if (right)
		AMX_TILESTORED(1, sums + UKERNEL_VECTOR, ROW_BYTES);
	if (lower)
		AMX_TILESTORED(2, sums + AMX_ROWS * UKERNEL_COLUMNS, ROW_BYTES);
	if (lower && right)
		AMX_TILESTORED(3, sums + AMX_ROWS * UKERNEL_COLUMNS + UKERNEL_VECTOR, ROW_BYTES);
}

static void block(const uint32_t *offsets, int64_t n_steps, const uint8_t *data, const uint8_t *weights,
		  unsigned rows, unsigned n_columns, int32_t *sums)
{
	const struct amx_config config = config_of(rows);
	bool lower = rows > AMX_ROWS;
	amx_ldtilecfg(&config);
	for (unsigned i = 0; i < n_columns; i += 2 * UKERNEL_VECTOR, sums += 2 * UKERNEL_VECTOR) {
		const uint8_t *at = data + i * UKERNEL_STEP_BYTES;
		bool right = i + UKERNEL_VECTOR < n_columns;
		if (lower && right)
			sum(offsets, n_steps, at, weights, rows, sums, true, true);
		else if (lower)
			sum(offsets, n_steps, at, weights, rows, sums, true, false);
		else if (right)
			sum(offsets, n_steps, at, weights, rows, sums, false, true);
		else
			sum(offsets, n_steps, at, weights, rows, sums, false, false);
	}
	amx_tilerelease();
}

const struct ukernel conv_fx8_32x64__amx_int8 = {
	.name = "conv_fx8_32x64__amx_int8",
	.n_terms = 4,
	.weight_bytes = 1,
	.rows = ROWS,
	.speed = 192,
	.depth = DEPTH,
	UKERNEL_AVX512_MOVES,
	.pack = pack,
	.block = block,
	.widen = ukernel_plain_widen,
	.store32 = ukernel_avx512_store8,
};
