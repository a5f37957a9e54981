#include "tests/unit/include/formulas/specs.h"

static struct npumem_plan plan_of(const struct npumem_geometry *geometry, const struct npumem_spec *spec)
{
	struct npumem_plan plan;
	struct npumem_error error = {0};
	ck_assert_msg(npumem_plan(geometry, spec, &plan, &error) == 0, "refused: %s", error.message);
	return plan;
}

TEST(waste)
{
	struct npumem_spec spec = specs_tensor(NPUMEM_FP32, 2, 3, 4, 5);
	spec.start_npu = 2;
	struct npumem_plan plan = plan_of(&specs_seed, &spec);
	ck_assert_int_eq(plan.waste, 4 * 512 - 2 * 3 * 20 * 4);
	ck_assert_int_eq(plan.n_widths, 0);
	/* From NPU 0 three channels need one block row instead of two. */
	ck_assert_int_eq(plan.best_start_npu, 0);
	ck_assert_int_eq(plan.best_start_saves, 256);
	spec.start_npu = 1;
	ck_assert_int_eq(plan_of(&specs_seed, &spec).best_start_saves, 0);
	spec.start_npu = NPUMEM_ANY;
	spec.address = 3 * 1024 + 128;
	ck_assert_int_eq(plan_of(&specs_seed, &spec).best_start_saves, 256);
}

/* No start NPU does better than the best one that the plan names, nor as well and lower. */
TEST(best_start)
{
	const struct npumem_geometry geometry = {.n_npus = 5, .npu_bytes = 1 << 20, .n_banks = 1, .eu_bytes = 32};
	uint64_t state = 9;
	for (unsigned round = 0; round < 300; round++) {
		struct npumem_spec spec = specs_any(&state, &geometry);
		struct npumem_plan plan;
		if (npumem_plan(&geometry, &spec, &plan, NULL) != 0)
			continue;
		int64_t least = INT64_MAX, best = -1;
		for (int64_t q = 0; q < 5; q++) {
			struct npumem_place place;
			spec.start_npu = q;
			if (npumem_place_resolve(&geometry, &spec, &place, NULL) == 0 &&
			    place.bytes_per_npu < least) {
				least = place.bytes_per_npu;
				best = q;
			}
		}
		ck_assert_int_eq(plan.best_start_npu, best);
		ck_assert_int_eq(plan.best_start_saves, plan.place.bytes_per_npu - least);
	}
}

TEST(banks)
{
	struct npumem_spec spec = specs_tensor(NPUMEM_UINT8, 1, 1, 1, 128); /* banks of 128 bytes */
	struct npumem_plan plan = plan_of(&specs_seed, &spec);
	ck_assert_int_eq(plan.first_bank, 0);
	ck_assert_int_eq(plan.last_bank, 0);
	spec.shape.w = 129;
	ck_assert_int_eq(plan_of(&specs_seed, &spec).last_bank, 1);
	spec.layout = NPUMEM_COMPACT;
	spec.shape.w = 128;
	spec.address = 2 * 1024 + 5 * 128 + 4;
	plan = plan_of(&specs_seed, &spec);
	ck_assert_int_eq(plan.first_bank, 5);
	ck_assert_int_eq(plan.last_bank, 6);
	ck_assert_int_eq(plan.place.npu, 2);
	ck_assert_int_eq(plan.place.offset, 644);
}

/* The seed's 2-by-40 matrix: of its widths 20, 15 and 10 need one block a row; 10 is the smallest of C <= X. */
TEST(matrix)
{
	struct npumem_spec spec = specs_matrix(NPUMEM_FP32, 2, 40, 0);
	struct npumem_plan plan = plan_of(&specs_seed, &spec);
	ck_assert_int_eq(plan.place.w, 10);
	ck_assert_int_eq(plan.place.bytes_per_npu, 256);
	/* One width for each size, until an NPU is full: from W = 1 with its 10 block rows up. */
	static const struct npumem_width table[] = {
		{10, 4, 1, 256},
		{40, 1, 1, 512},
		{4, 10, 3, 768},
		{3, 14, 4, 1024},
	};
	ck_assert_uint_eq(plan.n_widths, 4);
	ck_assert_int_eq(memcmp(plan.widths, table, sizeof(table)), 0);
	/* A width of the caller's choice changes the place, not the table. */
	spec.w = 6;
	plan = plan_of(&specs_seed, &spec);
	ck_assert_int_eq(plan.place.w, 6);
	ck_assert_uint_eq(plan.n_widths, 4);
	ck_assert_int_eq(plan.widths[0].w, 10);
}

TEST(refused)
{
	struct npumem_spec spec = specs_tensor(NPUMEM_FP32, 2, 3, 4, 0);
	struct npumem_plan plan, before;
	memset(&before, 0x5a, sizeof(before));
	plan = before;
	struct npumem_error error = {0};
	ck_assert_int_eq(npumem_plan(&specs_seed, &spec, &plan, &error), NPUMEM_INVALID);
	ck_assert_str_eq(error.message, "dimension W is 0, which is not in 1..2147483647");
	ck_assert_int_eq(memcmp(&plan, &before, sizeof(plan)), 0);
}
