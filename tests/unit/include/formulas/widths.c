#include "include/formulas/widths.h"
#include "tests/unit/include/formulas/specs.h"

/* Storage per NPU of a width, by the matrix layout itself. */
static int64_t bytes_of(const struct npumem_geometry *geometry, int64_t start_npu, int dtype, int64_t rows,
			int64_t cols, int64_t w)
{
	struct npumem_spec spec = specs_matrix(dtype, rows, cols, w);
	spec.start_npu = start_npu;
	return specs_resolve(geometry, &spec).bytes_per_npu;
}

/* The best width among all of them, and the table, against trying every W. */
TEST(every_width)
{
	uint64_t state = 3;
	for (unsigned round = 0; round < 1000; round++) {
		const struct npumem_geometry geometry = {
			.n_npus = specs_draw(&state, 1, 9),
			.npu_bytes = 1 << 20,
			.n_banks = 1,
			.eu_bytes = INT64_C(4) << specs_draw(&state, 0, 5),
		};
		int64_t start_npu = specs_draw(&state, 0, geometry.n_npus - 1);
		int64_t rows = specs_draw(&state, 1, 4), cols = specs_draw(&state, 1, 130);
		int dtype = specs_draw(&state, 0, 1) ? NPUMEM_FP32 : NPUMEM_UINT8;
		struct npumem_width table[NPUMEM_PLAN_WIDTHS_MAX];
		unsigned n = widths_table(&geometry, start_npu, rows, cols, npumem_dtype_bytes(dtype), table,
					  NPUMEM_PLAN_WIDTHS_MAX);
		int64_t least = INT64_MAX, best = 0;
		for (int64_t w = 1; w <= cols; w++) {
			int64_t bytes = bytes_of(&geometry, start_npu, dtype, rows, cols, w);
			bool fits = (cols + w - 1) / w <= geometry.n_npus;
			bool best_fits = best && (cols + best - 1) / best <= geometry.n_npus;
			if (bytes < least || (bytes == least && fits && !best_fits)) {
				least = bytes;
				best = w;
			}
		}
		ck_assert_int_eq(table[0].w, best);
		for (unsigned i = 0; i < n; i++) {
			ck_assert_int_eq(table[i].bytes_per_npu,
					 bytes_of(&geometry, start_npu, dtype, rows, cols, table[i].w));
			ck_assert_int_eq(table[i].channels, (cols + table[i].w - 1) / table[i].w);
			ck_assert_int_eq(table[i].channels_per_npu,
					 npumem_channels_per_npu(geometry.n_npus, start_npu, table[i].channels));
			ck_assert(i == 0 || table[i].bytes_per_npu > table[i - 1].bytes_per_npu);
		}
		struct npumem_width one = widths_best(&geometry, start_npu, rows, cols, npumem_dtype_bytes(dtype));
		ck_assert_int_eq(memcmp(&one, &table[0], sizeof(one)), 0);
	}
}

/* The largest matrix there may be: about 93,000 candidates, and sizes past 64 bits. */
TEST(largest)
{
	const struct npumem_geometry geometry = {
		.n_npus = 64, .npu_bytes = 1 << 30, .n_banks = 1, .eu_bytes = 128};
	struct npumem_width table[NPUMEM_PLAN_WIDTHS_MAX];
	unsigned n = widths_table(&geometry, 0, INT32_MAX, INT32_MAX, 8, table, NPUMEM_PLAN_WIDTHS_MAX);
	ck_assert_uint_eq(n, NPUMEM_PLAN_WIDTHS_MAX);
	for (unsigned i = 1; i < n; i++)
		ck_assert_int_gt(table[i].bytes_per_npu, table[i - 1].bytes_per_npu);
	struct npumem_spec spec = specs_matrix(NPUMEM_UINT8, 1, INT32_MAX, 0);
	struct npumem_place place = specs_resolve(&geometry, &spec);
	ck_assert_int_eq(place.bytes_per_npu, (INT64_C(1) << 31) / 64); /* 2^25: no byte is wasted but the last */
}
