/* A user's table read in rows. */
#include "daemon/device/fixed/rows/lookup.h"

#include "daemon/device/fixed/rows/vectors/vector.h"
#include "daemon/device/fixed/rows/vectors/vector_rounding.h"

struct lookup_vectors {
	struct rounding rounding;
	vector first, within, mask, word;
};

/* A difference has 17 bits and its product with a place within a step less than 32. */
VECTOR vector lookup_value(const struct lookup *lookup, const struct lookup_vectors *v, vector x)
{
	x = vector_add(x, v->first);
	vector pairs = vector_gather_pairs(lookup->entries, vector_right(x, v->within));
	vector here = vector_right(vector_left(pairs, v->word), v->word);
	if (lookup->within == 0)
		return here;
	vector part = vector_mul(vector_sub(vector_right(pairs, v->word), here), vector_and(x, v->mask));
	return vector_add(here, rounded_right(&v->rounding, part));
}

VECTOR void lookup_elements(const struct lookup *lookup, const struct lookup_vectors *v, const void *in, int64_t i,
			    int64_t n, void *out)
{
	vector x = lookup_value(lookup, v, vector_load_containers(in, lookup->in_bytes, i, n));
	vector_store_containers(out, lookup->out_bytes, i, x, n);
}

int64_t VECTOR_NAME(lookup)(const struct lookup *lookup, const void *in, int64_t n, void *out)
{
	const struct lookup copy = *lookup;
	const struct requantize to = {.shift = lookup->within, .rounding = lookup->rounding};
	const struct lookup_vectors v = {
		.rounding = rounding_of(&to, 0),
		.first = vector_set(lookup->in_bytes == 1 ? -INT8_MIN : -INT16_MIN),
		.within = vector_set((int32_t)lookup->within),
		.mask = vector_set((1 << lookup->within) - 1),
		.word = vector_set(16),
	};
	int64_t i = 0;
	for (; i + VECTOR_N <= n; i += VECTOR_N)
		lookup_elements(&copy, &v, in, i, VECTOR_N, out);
	if (VECTOR_TAILS && i < n) {
		lookup_elements(&copy, &v, in, i, n - i, out);
		i = n;
	}
	return i;
}
