/* A function of bytes read in rows. */
#include "daemon/device/fixed/rows/lut_bytes.h"

#include "daemon/device/fixed/rows/vectors/vector.h"

void VECTOR_NAME(lut_bytes)(const struct lut_bytes *bytes, const uint8_t *in, int64_t n, uint8_t *out,
			    int64_t *saturated)
{
	const struct vector_bytes_table results = vector_bytes_table_load(bytes->results);
	const struct vector_bytes_table clamped = vector_bytes_table_load(bytes->saturated);
	const bool clamps = memchr(bytes->saturated, 0xff, sizeof(bytes->saturated)) != NULL;
	int64_t i = 0, outside = 0;
	for (; VECTOR_TAILS ? i < n : i + VECTOR_BYTES <= n; i += VECTOR_BYTES) {
		vector index = vector_load_raw(in + i, n - i);
		vector_store_raw(out + i, vector_bytes_table_read(&results, index), n - i);
		if (clamps)
			outside += vector_count_other_raw(vector_bytes_table_read(&clamped, index), vector_set(0),
							  1, n - i);
	}
	*saturated += outside;
	if (i < n)
		lut_bytes__scalar(bytes, in + i, n - i, out + i, saturated);
}
