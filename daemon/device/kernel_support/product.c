/* By rows of weights, so that memory is walked as it lies; in blocks of columns whose sums stay in the first
 * cache, and of a few rows of data that share each row of weights as it passes. */
#include "daemon/device/kernel_support/product.h"

#include <string.h>

#include "daemon/device/kernel_support/operands.h"

enum { PRODUCT_COLUMNS = 512, PRODUCT_ROWS = 4 };

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

size_t product_scratch_bytes(int64_t columns)
{
	return PRODUCT_ROWS * (size_t)least(columns, PRODUCT_COLUMNS) * sizeof(int64_t);
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
	for (int64_t r = 0; r < rows; r += PRODUCT_ROWS) {
		int64_t n_rows = least(rows - r, PRODUCT_ROWS);
		for (int64_t m = 0; m < columns; m += PRODUCT_COLUMNS) {
			int64_t count = least(columns - m, PRODUCT_COLUMNS);
			int64_t row_bytes = count * mac.sum_bytes;
			uint8_t *sums = call->scratch;
			memset(sums, 0, (size_t)(n_rows * row_bytes));
			for (int64_t k = 0; k < terms; k++)
				for (int64_t i = 0; i < n_rows; i++)
					mac_row(&mac, sums + i * row_bytes,
						weights + (k * columns + m) * mac.row_bytes, 1,
						weighted_element(data, weighted.data_bytes, (r + i) * terms + k),
						count);
			for (int64_t i = 0; i < n_rows; i++)
				weighted_finish_channels(&weighted, sums + i * row_bytes, count, m,
							 out + ((r + i) * columns + m) * weighted.data_bytes,
							 &call->counts);
		}
	}
}
