#include "daemon/device/fixed/rows/lut_bytes.h"

#include "daemon/device/implementations.h"

void lut_bytes_init(struct lut_bytes *bytes, const struct lut_reader *reader)
{
	for (int i = 0; i < 256; i++) {
		int64_t saturated = 0;
		bytes->results[i] = (uint8_t)lut_result(reader, (int8_t)i, 1, &saturated);
		bytes->saturated[i] = saturated ? 0xff : 0;
	}
}

void lut_bytes__scalar(const struct lut_bytes *bytes, const uint8_t *in, int64_t n, uint8_t *out,
		       int64_t *saturated)
{
	for (int64_t i = 0; i < n; i++) {
		*saturated += bytes->saturated[in[i]] & 1;
		out[i] = bytes->results[in[i]];
	}
}

void lut_bytes_row(enum isa isa, const struct lut_bytes *bytes, const uint8_t *in, int64_t n, uint8_t *out,
		   int64_t *saturated)
{
	implementations[isa].lut_bytes(bytes, in, n, out, saturated);
}
