/* AMX's tiles of a thread in plain C, as Intel's manual (volume 2, "Intel AMX") has them, with what it refuses.
 * Memory is read and written row by row, no byte more, so that a sanitizer sees a step past the end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/device/engine/amx.h"
#include "daemon/device/isa.h"

struct tile {
	unsigned rows, row_bytes;
	uint8_t bytes[AMX_ROWS][AMX_ROW_BYTES];
};

static _Thread_local struct {
	bool configured;
	struct tile tiles[AMX_TILES];
} state;

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "emulated AMX: %s\n", what);
	abort();
}

void amx_ldtilecfg(const struct amx_config *config)
{
	static const uint8_t zeros[sizeof(config->reserved)];
	require(!state.configured, "tiles were not released");
	require(config->palette == 1, "palette");
	require(config->start_row == 0 && !memcmp(config->reserved, zeros, sizeof(zeros)), "reserved bytes");
	memset(&state, 0, sizeof(state));
	for (unsigned i = 0; i < 16; i++) {
		unsigned rows = config->rows[i], row_bytes = config->row_bytes[i];
		require(rows <= AMX_ROWS && row_bytes <= AMX_ROW_BYTES, "a tile is too large");
		require(!rows == !row_bytes, "rows without bytes, or bytes without rows");
		require(i < AMX_TILES || rows == 0, "there are 8 tiles");
		if (i < AMX_TILES)
			state.tiles[i] = (struct tile){.rows = rows, .row_bytes = row_bytes};
	}
	state.configured = true;
}

void amx_tilerelease(void)
{
	memset(&state, 0, sizeof(state));
}

static struct tile *find(unsigned tile)
{
	require(state.configured, "no configuration");
	require(tile < AMX_TILES && state.tiles[tile].rows > 0, "the tile is not configured");
	return &state.tiles[tile];
}

void amx_tilezero(unsigned tile)
{
	struct tile *t = find(tile);
	memset(t->bytes, 0, sizeof(t->bytes));
}

void amx_tileloadd(unsigned tile, const void *from, int64_t stride)
{
	struct tile *t = find(tile);
	memset(t->bytes, 0, sizeof(t->bytes));
	for (unsigned row = 0; row < t->rows; row++)
		memcpy(t->bytes[row], (const uint8_t *)from + row * stride, t->row_bytes);
}

void amx_tilestored(unsigned tile, void *to, int64_t stride)
{
	const struct tile *t = find(tile);
	for (unsigned row = 0; row < t->rows; row++)
		memcpy((uint8_t *)to + row * stride, t->bytes[row], t->row_bytes);
}

typedef uint32_t elements __attribute__((vector_size(AMX_ROW_BYTES)));

/* Byte i of every group of a row. */
static inline __attribute__((always_inline)) void take(const uint8_t *row, unsigned i, bool is_signed,
						       uint32_t of[AMX_ROWS])
{
	for (unsigned k = 0; k < AMX_ROWS; k++)
		of[k] = is_signed ? (uint32_t)(int8_t)row[4 * k + i] : row[4 * k + i];
}

/* Groups of 4 bytes of A by those of B's row. What lies outside of a tile is zeros. */
static inline __attribute__((always_inline)) void multiply(struct tile *c, const struct tile *a,
							   const struct tile *b, bool signed_a, bool signed_b)
{
	elements sums[AMX_ROWS];
	memcpy(sums, c->bytes, sizeof(sums));
	for (unsigned i = 0; i < 4; i++) {
		uint32_t left[AMX_ROWS][AMX_ROWS], right[AMX_ROWS];
		for (unsigned row = 0; row < AMX_ROWS; row++)
			take(a->bytes[row], i, signed_a, left[row]);
		for (unsigned k = 0; k < b->rows; k++) {
			elements of_b;
			take(b->bytes[k], i, signed_b, right);
			memcpy(&of_b, right, sizeof(of_b));
			for (unsigned row = 0; row < AMX_ROWS; row++)
				sums[row] += left[row][k] * of_b;
		}
	}
	memcpy(c->bytes, sums, sizeof(sums));
}

/* Where there is AVX-512 it takes a tenth of the time. */
__attribute__((target("avx512f"))) static void multiply_avx512(struct tile *c, const struct tile *a,
							       const struct tile *b, bool signed_a, bool signed_b)
{
	multiply(c, a, b, signed_a, signed_b);
}

static void multiply_plain(struct tile *c, const struct tile *a, const struct tile *b, bool signed_a,
			   bool signed_b)
{
	multiply(c, a, b, signed_a, signed_b);
}

void amx_product(unsigned c, unsigned a, unsigned b, bool signed_a, bool signed_b)
{
	struct tile *of_c = find(c), *of_a = find(a), *of_b = find(b);
	require(c != a && c != b && a != b, "a tile twice");
	require(of_c->row_bytes % 4 == 0 && of_a->row_bytes % 4 == 0, "a broken group of 4 bytes");
	require(of_c->rows == of_a->rows, "rows of A are not those of C");
	require(of_c->row_bytes == of_b->row_bytes, "columns of B are not those of C");
	require(of_a->row_bytes / 4 == of_b->rows, "columns of A are not rows of B");
	(__builtin_cpu_supports("avx512f") ? multiply_avx512 : multiply_plain)(of_c, of_a, of_b, signed_a,
									       signed_b);
}

/* Micro-kernels for AMX use AVX-512 VNNI too, which is not emulated. */
enum isa __real_isa_best(void);
enum isa __wrap_isa_best(void);
enum isa __wrap_isa_best(void)
{
	enum isa best = __real_isa_best();
	return best >= ISA_AVX512VNNI ? ISA_AMX_INT8 : best;
}
