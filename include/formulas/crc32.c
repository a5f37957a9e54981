/* Eight bytes at a time, a table for each: entry b of table k is the CRC of a byte b and k zero bytes after it.
 * The tables are made when they are first asked for. */
#include "include/formulas/crc32.h"

#include <stdatomic.h>

enum { TABLES = 8, VALUES = 256 };

static const uint32_t polynomial = 0xedb88320; /* the lowest bit is the highest power */
static uint32_t tables[TABLES][VALUES];
enum { UNTOUCHED, BEGUN, DONE };
static atomic_int state;

static void make(void)
{
	for (uint32_t value = 0; value < VALUES; value++) {
		uint32_t crc = value;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
		tables[0][value] = crc;
	}
	for (int k = 1; k < TABLES; k++)
		for (uint32_t value = 0; value < VALUES; value++) {
			uint32_t before = tables[k - 1][value];
			tables[k][value] = before >> 8 ^ tables[0][before & 0xff];
		}
}

static void prepare(void)
{
	int before = UNTOUCHED;
	if (atomic_compare_exchange_strong(&state, &before, BEGUN)) {
		make();
		state = DONE;
	}
	while (state != DONE)
		;
}

uint32_t crc32_add(uint32_t crc, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;
	if (atomic_load_explicit(&state, memory_order_acquire) != DONE)
		prepare();
	crc = ~crc;
	for (; n >= TABLES; n -= TABLES, at += TABLES) {
		crc ^= at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
		crc = tables[7][crc & 0xff] ^ tables[6][crc >> 8 & 0xff] ^ tables[5][crc >> 16 & 0xff] ^
		      tables[4][crc >> 24] ^ tables[3][at[4]] ^ tables[2][at[5]] ^ tables[1][at[6]] ^
		      tables[0][at[7]];
	}
	for (; n; n--)
		crc = crc >> 8 ^ tables[0][(crc ^ *at++) & 0xff];
	return ~crc;
}
