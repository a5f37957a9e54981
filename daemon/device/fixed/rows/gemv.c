/* The scalar function, which defines what the others compute. */
#include "daemon/device/fixed/rows/gemv.h"

#include "daemon/device/fixed/container.h"
#include "daemon/device/implementations.h"

int64_t gemv__scalar(const struct gemv *g, int64_t n, int64_t *sums)
{
	for (int64_t k = 0; k < g->n_terms; k++) {
		int64_t x = container_get(g->vector, g->vector_bytes, k);
		int64_t first = g->pairs ? k / 2 * 2 * g->row + k % 2 : k * g->row, step = g->pairs ? 2 : 1;
		for (int64_t j = 0; j < n; j++)
			sums[j] += x * container_get(g->weights, g->weight_bytes, first + j * step);
	}
	return n;
}

void gemv_columns(enum isa isa, const struct gemv *gemv, int64_t n, int64_t *sums)
{
	int64_t done = implementations[isa].gemv(gemv, n, sums);
	struct gemv rest = *gemv;
	if (done == n)
		return;
	rest.weights = (const uint8_t *)gemv->weights + done * gemv->weight_bytes * (gemv->pairs ? 2 : 1);
	gemv__scalar(&rest, n - done, sums + done);
}
