/* By rows of weights, so that memory is walked as it lies; in blocks of columns whose sums stay in the first
 * cache. */
#include "daemon/device/kernel_support/product.h"

#include <string.h>

#include "daemon/device/kernel_support/operands.h"

enum {
	PRODUCT_COLUMNS = 1024,
	PRODUCT_TERMS = 256, /* that are added at once */
};

size_t product_scratch_bytes(int64_t columns)
{
	int64_t block = columns < PRODUCT_COLUMNS ? columns : PRODUCT_COLUMNS;
	return (size_t)(block + MAC_STEP) * sizeof(int64_t);
}

/* Operands of one run. */
struct product {
	struct kernel_call *call;
	struct weighted weighted;
	struct mac mac;
	const void *data, *weights;
	int64_t terms, columns;
};

/* Adds n rows of weights to the sums of `count` columns and of what makes a full step of them, taken from the next
 * row as far as there is one. */
static void add_rows(const struct product *p, const int64_t *offsets, const int16_t *scalars, int64_t n,
		     int64_t count)
{
	int64_t full = (count + MAC_STEP - 1) / MAC_STEP * MAC_STEP, rows = n;
	while (rows > 0 && offsets[rows - 1] + full > p->terms * p->columns)
		rows--;
	mac_rows(&p->mac, p->call->scratch, p->weights, offsets, scalars, rows, full);
	mac_rows(&p->mac, p->call->scratch, p->weights, offsets + rows, scalars + rows, n - rows, count);
}

/* The sums of `count` columns from m on, for one row of data. False where the rest is no longer wanted. */
static bool add_terms(const struct product *p, int64_t row, int64_t m, int64_t count)
{
	int64_t offsets[PRODUCT_TERMS];
	int16_t scalars[PRODUCT_TERMS];
	int64_t looked = 0;
	memset(p->call->scratch, 0, (size_t)(count + MAC_STEP) * p->mac.sum_bytes);
	for (int64_t k = 0; k < p->terms; k += PRODUCT_TERMS) {
		int64_t n = p->terms - k < PRODUCT_TERMS ? p->terms - k : PRODUCT_TERMS;
		for (int64_t i = 0; i < n; i++) {
			offsets[i] = (k + i) * p->columns + m;
			scalars[i] =
				(int16_t)weighted_element(p->data, p->weighted.data_bytes, row * p->terms + k + i);
		}
		add_rows(p, offsets, scalars, n, count);
		if ((k + n - looked) * count < kernel_piece(p->call))
			continue;
		looked = k + n;
		if (!kernel_part(p->call, count, looked, p->terms))
			return false;
	}
	return true;
}

void product_run(struct kernel_call *call, const struct weighted_roles *roles, int64_t rows, int64_t terms,
		 int64_t columns)
{
	uint8_t *out = operands_get(call, roles->out)->data;
	struct product p = {.call = call,
			    .data = operands_get(call, roles->data)->data,
			    .weights = operands_get(call, roles->weights)->data,
			    .terms = terms,
			    .columns = columns};
	weighted_init(&p.weighted, call, roles, terms);
	p.mac = weighted_weight_rows(&p.weighted);
	call->counts = (struct kernel_counts){.macs = rows * terms * columns};
	for (int64_t r = 0; r < rows; r++) {
		for (int64_t m = 0; m < columns; m += PRODUCT_COLUMNS) {
			int64_t count = columns - m < PRODUCT_COLUMNS ? columns - m : PRODUCT_COLUMNS;
			if (!add_terms(&p, r, m, count))
				return;
			weighted_finish_channels(&p.weighted, call->scratch, count, m,
						 out + (r * columns + m) * p.weighted.data_bytes, &call->counts);
			if (!kernel_step(call, count))
				return;
		}
	}
}
