/* The k best against a full sort by comparison of all pairs. */

#include "daemon/device/kernel_support/order_best.h"
#include "tests/support/oracle.h"
#include "tests/support/test.h"

enum { MOST = 200 };

/* How many of the n values go before value i. */
static int64_t rank_of(const int64_t *values, int64_t n, int64_t i)
{
	int64_t rank = 0;
	for (int64_t k = 0; k < n; k++)
		rank += values[k] > values[i] || (values[k] == values[i] && k < i);
	return rank;
}

static void check_best(const int64_t *values, int64_t n, int64_t k, bool backwards)
{
	struct order_best_entry entries[MOST];
	struct order_best best;
	order_best_init(&best, entries, k);
	for (int64_t i = 0; i < n; i++)
		order_best_offer(&best, values[backwards ? n - 1 - i : i], backwards ? n - 1 - i : i);
	while (!order_best_finish(&best, 1 + n % 3))
		ck_assert_int_lt(best.sorted, best.n - 1);
	ck_assert_int_eq(best.n, n < k ? n : k);
	for (int64_t i = 0; i < n; i++) {
		int64_t rank = rank_of(values, n, i);
		if (rank >= best.n)
			continue;
		ck_assert_int_eq(entries[rank].index, i);
		ck_assert_int_eq(entries[rank].value, values[i]);
	}
}

TEST(against_ranks)
{
	uint64_t state = 61;
	int64_t values[MOST];
	for (int round = 0; round < 60; round++) {
		int64_t n = oracle_between(&state, 1, MOST), spread = round % 3 == 0   ? 0
								      : round % 3 == 1 ? 5
										       : 1 << 30;
		for (int64_t i = 0; i < n; i++)
			values[i] = oracle_between(&state, -spread, spread);
		check_best(values, n, 1, round % 2);
		check_best(values, n, n, round % 2);
		check_best(values, n, oracle_between(&state, 1, MOST), round % 2);
	}
}

TEST(sorted_sequences)
{
	int64_t up[MOST], down[MOST];
	for (int64_t i = 0; i < MOST; i++) {
		up[i] = i / 2;
		down[i] = -i / 2;
	}
	for (int64_t k = 1; k <= MOST; k += 7) {
		check_best(up, MOST, k, false);
		check_best(down, MOST, k, false);
		check_best(up, MOST, k, true);
	}
}
