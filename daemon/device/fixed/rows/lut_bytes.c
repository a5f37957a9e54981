#include "daemon/device/fixed/rows/lut_bytes.h"

void lut_bytes_init(struct lut_bytes *bytes, const struct lut_reader *reader)
{
	for (int i = 0; i < 256; i++) {
		int64_t saturated = 0;
		bytes->results[i] = (uint8_t)lut_result(reader, (int8_t)i, 1, &saturated);
		bytes->saturated[i] = saturated ? 0xff : 0;
	}
}

static void scalar(const struct lut_bytes *bytes, const uint8_t *in, int64_t n, uint8_t *out, int64_t *saturated)
{
	for (int64_t i = 0; i < n; i++) {
		*saturated += bytes->saturated[in[i]] & 1;
		out[i] = bytes->results[in[i]];
	}
}

#ifdef __x86_64__
void lut_bytes_row__avx2(const struct lut_bytes *bytes, const uint8_t *in, int64_t n, uint8_t *out,
			 int64_t *saturated);
void lut_bytes_row__avx512vnni(const struct lut_bytes *bytes, const uint8_t *in, int64_t n, uint8_t *out,
			       int64_t *saturated);

void lut_bytes_row(enum isa isa, const struct lut_bytes *bytes, const uint8_t *in, int64_t n, uint8_t *out,
		   int64_t *saturated)
{
	(isa >= ISA_AVX512VNNI ? lut_bytes_row__avx512vnni
	 : isa == ISA_AVX2     ? lut_bytes_row__avx2
			       : scalar)(bytes, in, n, out, saturated);
}
#else
void lut_bytes_row(enum isa isa, const struct lut_bytes *bytes, const uint8_t *in, int64_t n, uint8_t *out,
		   int64_t *saturated)
{
	(void)isa;
	scalar(bytes, in, n, out, saturated);
}
#endif
