/* The scalar row, which defines what the others compute. */
#include "daemon/device/fixed/rows/lookup.h"

#include "daemon/device/implementations.h"

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

void lookup_row(enum isa isa, const struct lookup *lookup, const void *in, int64_t n, void *out)
{
	int64_t (*row)(const struct lookup *, const void *, int64_t, void *) = implementations[isa].lookup;
	scalar(lookup, in, row ? row(lookup, in, n, out) : 0, n, out);
}
