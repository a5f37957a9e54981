/* The scalar functions, which define what the others compute. */
#include "daemon/device/fixed/rows/gemv.h"

#include "daemon/device/fixed/container.h"
#include "daemon/device/implementations.h"

static int64_t scalar_rows(const struct gemv *g, int64_t n, int64_t *sums)
{
	for (int64_t i = 0; i < n; i++)
		for (int64_t k = 0; k < g->n_terms; k++)
			sums[i] += container_get(g->vector, g->vector_bytes, k) *
				   container_get(g->weights, g->weight_bytes, i * g->row + k);
	return g->n_terms;
}

static int64_t scalar_columns(const struct gemv *g, int64_t n, int64_t *sums)
{
	for (int64_t k = 0; k < g->n_terms; k++)
		for (int64_t j = 0; j < n; j++)
			sums[j] += container_get(g->vector, g->vector_bytes, k) *
				   container_get(g->weights, g->weight_bytes, k * g->row + j);
	return n;
}

const struct gemv_functions gemv__scalar = {scalar_rows, scalar_columns};

void gemv_rows(enum isa isa, const struct gemv *gemv, int64_t n, int64_t *sums)
{
	int64_t done = implementations[isa].gemv->rows(gemv, n, sums);
	struct gemv rest = *gemv;
	if (done == gemv->n_terms)
		return;
	rest.vector = (const uint8_t *)gemv->vector + done * gemv->vector_bytes;
	rest.weights = (const uint8_t *)gemv->weights + done * gemv->weight_bytes;
	rest.n_terms -= done;
	scalar_rows(&rest, n, sums);
}

void gemv_columns(enum isa isa, const struct gemv *gemv, int64_t n, int64_t *sums)
{
	int64_t done = implementations[isa].gemv->columns(gemv, n, sums);
	struct gemv rest = *gemv;
	if (done == n)
		return;
	rest.weights = (const uint8_t *)gemv->weights + done * gemv->weight_bytes;
	scalar_columns(&rest, n - done, sums + done);
}
