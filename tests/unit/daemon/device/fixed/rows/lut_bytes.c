/* Every byte in rows of every length, under every instruction set, against lut_result(). */
#include "daemon/device/fixed/rows/lut_bytes.h"

#include <string.h>

#include "tests/support/test.h"

enum { LENGTH_MAX = 300, GUARD = 0x5a };

static void check_row(enum isa isa, const struct lut_reader *reader, const struct lut_bytes *bytes, int64_t n)
{
	uint8_t in[LENGTH_MAX], out[LENGTH_MAX + 1];
	int64_t saturated = 0, want = 0;
	for (int64_t i = 0; i < n; i++)
		in[i] = (uint8_t)(i + n);
	memset(out, GUARD, sizeof(out));
	lut_bytes_row(isa, bytes, in, n, out, &saturated);
	for (int64_t i = 0; i < n; i++)
		ck_assert_int_eq((int8_t)out[i], lut_result(reader, (int8_t)in[i], 1, &want));
	ck_assert_int_eq(saturated, want);
	ck_assert_int_eq(out[n], GUARD);
}

TEST(every_length)
{
	for (int isa = ISA_SCALAR; isa < ISA_N; isa = isa_next(isa))
		for (int function = LUT_SIGMOID; function <= LUT_TANH; function++)
			for (int64_t frac_bits = -1; frac_bits <= 8; frac_bits += 3) {
				struct lut_reader reader;
				struct lut_bytes bytes;
				lut_reader_init(&reader, lut_find((enum lut_function)function, LUT_MLI2_0),
						frac_bits, NPUMEM_CONVERGENT);
				lut_bytes_init(&bytes, &reader);
				for (int64_t n = 1; n <= LENGTH_MAX; n++)
					check_row((enum isa)isa, &reader, &bytes, n);
			}
}
