/* The scalar row, which defines what the others compute, and the choice among them. */
#include "daemon/device/fixed/rows/lookup.h"

static void scalar(const struct lookup *lookup, const void *in, int64_t first, int64_t n, void *out)
{
	for (int64_t i = first; i < n; i++) {
		int64_t x = lookup->in_bytes == 1 ? ((const int8_t *)in)[i] : ((const int16_t *)in)[i];
		int64_t y = lookup_read(lookup, x);
		if (lookup->out_bytes == 1)
			((int8_t *)out)[i] = (int8_t)y;
		else
			((int16_t *)out)[i] = (int16_t)y;
	}
}

#ifdef __x86_64__
int64_t lookup_row__avx2(const struct lookup *lookup, const void *in, int64_t n, void *out);
int64_t lookup_row__avx512vnni(const struct lookup *lookup, const void *in, int64_t n, void *out);

void lookup_row(enum isa isa, const struct lookup *lookup, const void *in, int64_t n, void *out)
{
	int64_t done = 0;
	if (isa >= ISA_AVX512VNNI)
		done = lookup_row__avx512vnni(lookup, in, n, out);
	else if (isa == ISA_AVX2)
		done = lookup_row__avx2(lookup, in, n, out);
	scalar(lookup, in, done, n, out);
}
#else
void lookup_row(enum isa isa, const struct lookup *lookup, const void *in, int64_t n, void *out)
{
	(void)isa;
	scalar(lookup, in, 0, n, out);
}
#endif
