/* The scalar row, which defines what the others compute. */
#include "daemon/device/fixed/rows/lookup.h"

#include "daemon/device/fixed/container.h"
#include "daemon/device/implementations.h"

void lookup_row(enum isa isa, const struct lookup *lookup, const void *in, int64_t n, void *out)
{
	int64_t (*row)(const struct lookup *, const void *, int64_t, void *) = implementations[isa].lookup;
	for (int64_t i = row ? row(lookup, in, n, out) : 0; i < n; i++)
		container_put(out, lookup->out_bytes, i,
			      lookup_read(lookup, container_get(in, lookup->in_bytes, i)));
}
