/* 256 bytes are four tables of 64, of which a lookup reads one and leaves what it has for an index past it. */
#include <arm_neon.h>

#include "daemon/device/fixed/rows/lut_bytes.h"
#include "daemon/device/implementations.h"

enum { TABLES = 4, TABLE_BYTES = 64, VECTOR_BYTES = 16 };

static inline uint8x16_t read_table(const uint8x16x4_t *tables, uint8x16_t index)
{
	uint8x16_t result = vqtbl4q_u8(tables[0], index);
	for (int i = 1; i < TABLES; i++)
		result = vqtbx4q_u8(result, tables[i], vsubq_u8(index, vdupq_n_u8((uint8_t)(i * TABLE_BYTES))));
	return result;
}

void lut_bytes__neon(const struct lut_bytes *bytes, const uint8_t *in, int64_t n, uint8_t *out, int64_t *saturated)
{
	uint8x16x4_t results[TABLES], clamped[TABLES];
	int64_t i = 0;
	for (int t = 0; t < TABLES; t++) {
		results[t] = vld1q_u8_x4(bytes->results + t * TABLE_BYTES);
		clamped[t] = vld1q_u8_x4(bytes->saturated + t * TABLE_BYTES);
	}
	for (; i + VECTOR_BYTES <= n; i += VECTOR_BYTES) {
		uint8x16_t index = vld1q_u8(in + i);
		vst1q_u8(out + i, read_table(results, index));
		*saturated += vaddvq_u8(vshrq_n_u8(read_table(clamped, index), 7));
	}
	lut_bytes__scalar(bytes, in + i, n - i, out + i, saturated);
}
