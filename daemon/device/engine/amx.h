/* AMX's tiles: eight registers of up to 16 rows of 64 bytes, whose extents are a thread's configuration.
 *
 * A product adds to C, for each row of A and each column of B (4 bytes), over all 4-byte groups k of A's row, the
 * four products of A's group k with B's row k. So A has a row for each of C's, and B a row for each group of A's.
 * Every tile has what it was configured for; two tiles that do not fit are an illegal instruction. */
#ifndef DEVICE_AMX_H
#define DEVICE_AMX_H

#include <stdint.h>

enum { AMX_TILES = 8, AMX_ROWS = 16, AMX_ROW_BYTES = 64 };

/* As ldtilecfg reads it. A tile has neither rows nor bytes, or both. */
struct amx_config {
	uint8_t palette; /* 1 */
	uint8_t start_row, reserved[14];
	uint16_t row_bytes[16];
	uint8_t rows[16];
};

/* amx_ldtilecfg(config), amx_tilerelease(); AMX_TILEZERO(tile), AMX_TILELOADD(tile, from, stride),
 * AMX_TILESTORED(tile, to, stride), strides in bytes; AMX_TDPBSSD(c, a, b), ..SUD, ..USD, ..UUD, whose two letters
 * say whether bytes of A and of B are signed. Tiles are numbers, literally. A caller that configures the tiles
 * releases them: a thread with tiles in use costs 8 KiB at each switch. */
#include "daemon/device/engine/amx_instructions.h"

#endif
