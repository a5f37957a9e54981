/* The emulated tiles against plain loops, and that they refuse what the processor refuses. */
#include <signal.h>
#include <string.h>

#include "daemon/device/engine/amx.h"
#include "tests/support/oracle.h"
#include "tests/support/test.h"

/* C in tile 0 of `rows` x `columns`, A in 1, B in 2, with `depth` groups of 4 bytes. */
static struct amx_config config_of(unsigned rows, unsigned columns, unsigned depth)
{
	struct amx_config config = {.palette = 1};
	config.rows[0] = config.rows[1] = (uint8_t)rows;
	config.row_bytes[0] = config.row_bytes[2] = (uint16_t)(4 * columns);
	config.row_bytes[1] = (uint16_t)(4 * depth);
	config.rows[2] = (uint8_t)depth;
	return config;
}

static void product(int signs)
{
	switch (signs) {
	case 0:
		AMX_TDPBUUD(0, 1, 2);
		break;
	case 1:
		AMX_TDPBUSD(0, 1, 2);
		break;
	case 2:
		AMX_TDPBSUD(0, 1, 2);
		break;
	default:
		AMX_TDPBSSD(0, 1, 2);
	}
}

static void check_product(uint64_t *state, int signs)
{
	enum { PITCH = 80, SIDE = AMX_ROWS };
	static uint8_t a[SIDE * PITCH], b[SIDE * PITCH];
	static int32_t c[SIDE][SIDE];
	unsigned rows = (unsigned)oracle_between(state, 1, SIDE),
		 columns = (unsigned)oracle_between(state, 1, SIDE);
	unsigned depth = (unsigned)oracle_between(state, 1, SIDE);
	struct amx_config config = config_of(rows, columns, depth);
	for (unsigned i = 0; i < sizeof(a); i++) {
		a[i] = (uint8_t)oracle_random(state);
		b[i] = (uint8_t)oracle_random(state);
	}
	memset(c, 0x55, sizeof(c));
	amx_ldtilecfg(&config);
	AMX_TILEZERO(0);
	AMX_TILELOADD(1, a, PITCH);
	AMX_TILELOADD(2, b, PITCH);
	product(signs);
	product(signs);
	AMX_TILESTORED(0, c, sizeof(c[0]));
	amx_tilerelease();
	for (unsigned row = 0; row < SIDE; row++)
		for (unsigned column = 0; column < SIDE; column++) {
			int32_t want = 0;
			for (unsigned k = 0; k < 4 * depth; k++) {
				uint8_t x = a[row * PITCH + k], y = b[k / 4 * PITCH + 4 * column + k % 4];
				want += 2 * (signs & 2 ? (int8_t)x : x) * (signs & 1 ? (int8_t)y : y);
			}
			ck_assert_int_eq(c[row][column], row < rows && column < columns ? want : 0x55555555);
		}
}

TEST(products)
{
	uint64_t state = 16;
	for (int i = 0; i < 400; i++)
		check_product(&state, i % 4);
}

enum { MISUSES = 14 };

static void misconfigure(int i)
{
	struct amx_config config = config_of(16, 16, 16);
	switch (i) {
	case 0:
		config.palette = 2;
		break;
	case 1:
		config.reserved[13] = 1;
		break;
	case 2:
		config.rows[3] = 17;
		config.row_bytes[3] = 64;
		break;
	case 3:
		config.rows[3] = 16;
		config.row_bytes[3] = 65;
		break;
	case 4:
		config.rows[3] = 1;
		break;
	case 5:
		config.row_bytes[3] = 4;
		break;
	case 6:
		config.rows[8] = config.row_bytes[8] = 4;
		break;
	default:
		amx_ldtilecfg(&config); /* twice */
	}
	amx_ldtilecfg(&config);
}

/* With one tile of three less by a row or a group. */
static void multiply_unlike(unsigned tile, bool row)
{
	struct amx_config config = config_of(16, 16, 16);
	config.rows[tile] -= row;
	config.row_bytes[tile] -= row ? 0 : 4;
	amx_ldtilecfg(&config);
	AMX_TDPBSSD(0, 1, 2);
}

TEST(misuse, .to = MISUSES, .signal = SIGABRT)
{
	struct amx_config config = config_of(16, 16, 16);
	switch (_i) {
	case 8:
		AMX_TILEZERO(0);
		break;
	case 9:
		amx_ldtilecfg(&config);
		AMX_TILEZERO(3);
		break;
	case 10:
		amx_ldtilecfg(&config);
		AMX_TDPBSSD(0, 1, 1);
		break;
	case 11:
		multiply_unlike(0, true);
		break;
	case 12:
		multiply_unlike(0, false);
		break;
	case 13:
		multiply_unlike(2, true);
		break;
	default:
		misconfigure(_i);
	}
}
