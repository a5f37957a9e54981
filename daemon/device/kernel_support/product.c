/* By rows of weights, so that memory is walked as it lies; in blocks of columns whose sums stay in the first
 * cache. */
#include "daemon/device/kernel_support/product.h"

#include <string.h>

#include "daemon/device/kernel_support/operands.h"

enum { PRODUCT_COLUMNS = 1024 };

size_t product_scratch_bytes(int64_t columns)
{
	return (size_t)(columns < PRODUCT_COLUMNS ? columns : PRODUCT_COLUMNS) * sizeof(int64_t);
}

void product_run(struct kernel_call *call, const struct weighted_roles *roles, int64_t rows, int64_t terms,
		 int64_t columns)
{
	const uint8_t *weights = operands_get(call, roles->weights)->data;
	const void *data = operands_get(call, roles->data)->data;
	uint8_t *out = operands_get(call, roles->out)->data;
	struct weighted weighted;
	weighted_init(&weighted, call, roles, terms);
	struct mac mac = weighted_weight_rows(&weighted);
	call->counts = (struct kernel_counts){.macs = rows * terms * columns};
	for (int64_t r = 0; r < rows; r++) {
		for (int64_t m = 0; m < columns; m += PRODUCT_COLUMNS) {
			int64_t count = columns - m < PRODUCT_COLUMNS ? columns - m : PRODUCT_COLUMNS;
			memset(call->scratch, 0, (size_t)count * mac.sum_bytes);
			for (int64_t k = 0; k < terms; k++)
				mac_row(&mac, call->scratch, weights + (k * columns + m) * mac.row_bytes, 1,
					weighted_element(data, weighted.data_bytes, r * terms + k), count);
			weighted_finish_channels(&weighted, call->scratch, count, m,
						 out + (r * columns + m) * weighted.data_bytes, &call->counts);
			if (!kernel_step(call, count))
				return;
		}
	}
}
