/* Combs against a map of their bytes. */
#include "daemon/device/geometry/comb.h"

#include <check.h>
#include <string.h>

#include "tests/support/oracle.h"

enum { MAP_BYTES = 4096 };

static void draw(const struct comb *comb, uint8_t *map)
{
	int64_t at[COMB_DIMS] = {0};
	memset(map, 0, MAP_BYTES);
	for (;;) {
		int64_t low = comb->low;
		unsigned k = 0;
		for (unsigned i = 0; i < comb->n; i++)
			low += at[i] * comb->dims[i].stride;
		for (int64_t i = 0; i < comb->bytes; i++)
			map[low + i] = 1;
		while (k < comb->n && ++at[k] == comb->dims[k].count)
			at[k++] = 0;
		if (k == comb->n)
			return;
	}
}

/* Strides that nest, or any at all. */
static struct comb random_comb(uint64_t *random, bool nested)
{
	int64_t reach = oracle_between(random, 1, 4), n = oracle_between(random, 0, COMB_DIMS);
	struct comb comb = {.low = oracle_between(random, 0, 300), .bytes = reach};
	for (int64_t i = 0; i < n; i++) {
		int64_t count = oracle_between(random, 1, 5), room = (MAP_BYTES / 2 - reach) / 4;
		int64_t stride = oracle_between(random, 1, 60);
		if (nested)
			stride = reach + oracle_between(random, 0, 1) * oracle_between(random, 0, 7);
		if ((count - 1) * stride > room)
			continue;
		comb_repeat(&comb, stride, count);
		reach += (count - 1) * stride;
	}
	return comb;
}

static void one_pair(uint64_t *random, bool nested)
{
	static uint8_t a_map[MAP_BYTES], b_map[MAP_BYTES];
	struct comb a = random_comb(random, nested), b = random_comb(random, nested);
	int64_t first = 0, steps = 1 << 20, low;
	draw(&a, a_map);
	draw(&b, b_map);
	while (first < MAP_BYTES && !(a_map[first] && b_map[first]))
		first++;
	enum comb_answer answer = comb_meet(&a, &b, &steps);
	ck_assert_int_eq(answer, first < MAP_BYTES ? COMB_MEET : COMB_APART);
	if (answer == COMB_APART)
		return;
	ck_assert(comb_first(&a, &b, &steps, &low));
	if (nested)
		ck_assert(low <= first && first < low + a.bytes);
	/* A tooth of a, one of whose bytes b has. */
	bool meets = false;
	for (int64_t i = low; i < low + a.bytes; i++) {
		ck_assert(a_map[i]);
		meets |= b_map[i];
	}
	ck_assert(meets);
}

START_TEST(agree_with_a_map)
{
	uint64_t random = 21;
	for (int i = 0; i < 6000; i++)
		one_pair(&random, i % 2);
}
END_TEST

START_TEST(teeth_that_touch_are_one)
{
	struct comb comb = {.low = 5, .bytes = 2};
	comb_repeat(&comb, 24, 3);
	comb_repeat(&comb, 2, 4);
	comb_repeat(&comb, 7, 1);
	ck_assert_uint_eq(comb.n, 1);
	ck_assert_int_eq(comb.bytes, 8);
	comb_repeat(&comb, 8, 3);
	ck_assert_uint_eq(comb.n, 0);
	ck_assert_int_eq(comb.bytes, 72);
	ck_assert_int_eq(comb.low, 5);
}
END_TEST

/* Two strides of each, without a common factor: a solution by Euclid, not by trial. */
START_TEST(large_strides_take_few_steps)
{
	struct comb a = {.bytes = 1}, b = {.bytes = 1};
	int64_t steps = 3;
	comb_repeat(&a, 999983, 1000);
	comb_repeat(&b, 1000003, 1000);
	ck_assert_int_eq(comb_meet(&a, &b, &steps), COMB_MEET);
	a.low = 7;
	/* 999983 i + 7 = 1000003 j: i = j is 7 = 20 j, and i = j + 1 is 999990 = 20 j. */
	steps = 3;
	ck_assert_int_eq(comb_meet(&a, &b, &steps), COMB_APART);
	a.low = 20 * 321;
	steps = 3;
	ck_assert_int_eq(comb_meet(&a, &b, &steps), COMB_MEET);
	int64_t low;
	steps = 1000;
	ck_assert(comb_first(&a, &b, &steps, &low));
	ck_assert_int_eq(low, INT64_C(321) * 1000003);
}
END_TEST

/* What only Euclid's algorithm decides: two long strides, one for each comb, against all their multiples. */
START_TEST(two_strides)
{
	uint64_t random = 23;
	unsigned n_meet = 0;
	for (int i = 0; i < 20000; i++) {
		struct comb a = {.low = oracle_between(&random, 0, 8000), .bytes = oracle_between(&random, 1, 3)};
		struct comb b = {.low = oracle_between(&random, 0, 8000), .bytes = oracle_between(&random, 1, 3)};
		struct comb_dim s = {oracle_between(&random, 200, 900), oracle_between(&random, 20, 60)};
		struct comb_dim t = {oracle_between(&random, 200, 900), oracle_between(&random, 20, 60)};
		int64_t steps = 1;
		bool meet = false;
		comb_repeat(&a, s.stride, s.count);
		comb_repeat(&b, t.stride, t.count);
		for (int64_t x = 0; x < s.count; x++) {
			int64_t at = a.low + x * s.stride - b.low, y = at < 0 ? 0 : at / t.stride;
			for (int64_t k = y; k <= y + 1 && k < t.count; k++)
				meet |= k * t.stride < at + a.bytes && at < k * t.stride + b.bytes;
		}
		ck_assert_int_eq(comb_meet(&a, &b, &steps), meet ? COMB_MEET : COMB_APART);
		n_meet += meet;
	}
	ck_assert_uint_gt(n_meet, 2000);
	ck_assert_uint_lt(n_meet, 18000);
}
END_TEST

/* With too few steps there is no answer, and never a wrong one. */
START_TEST(gives_up)
{
	uint64_t random = 22;
	unsigned n_unknown = 0;
	for (int i = 0; i < 2000; i++) {
		struct comb a = random_comb(&random, false), b = random_comb(&random, false);
		int64_t many = 1 << 20, few = 2, none = 0;
		enum comb_answer answer = comb_meet(&a, &b, &many), hasty = comb_meet(&a, &b, &few);
		ck_assert(hasty == answer || hasty == COMB_UNKNOWN);
		ck_assert_int_eq(comb_meet(&a, &b, &none), COMB_UNKNOWN);
		n_unknown += hasty == COMB_UNKNOWN;
	}
	ck_assert_uint_gt(n_unknown, 0);
	ck_assert_uint_lt(n_unknown, 1000);
}
END_TEST

Suite *suite_comb(void)
{
	Suite *suite = suite_create("device/comb");
	TCase *tcase = tcase_create("comb");
	tcase_add_test(tcase, agree_with_a_map);
	tcase_add_test(tcase, teeth_that_touch_are_one);
	tcase_add_test(tcase, large_strides_take_few_steps);
	tcase_add_test(tcase, two_strides);
	tcase_add_test(tcase, gives_up);
	suite_add_tcase(suite, tcase);
	return suite;
}
