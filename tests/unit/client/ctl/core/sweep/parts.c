#include "client/ctl/core/sweep/sweep.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/test.h"

static int add(struct parts *parts, unsigned shard, unsigned n, double time, const char *id, const char *split)
{
	struct part part = {.path = "p", .of = {.shard = shard, .n_shards = n, .n_items = 9, .time = time}};
	snprintf(part.of.id, sizeof(part.of.id), "%s", id);
	snprintf(part.of.split, sizeof(part.of.split), "%s", split);
	return parts_add(parts, &part, NULL);
}

TEST(the_latest_counts)
{
	static const double times[] = {5, 7, 6, 7};
	struct parts parts = {.n = 0};
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(add(&parts, 2, 3, times[i], "a", "b"), 0);
	/* Of one time the one that was added later. */
	ck_assert_ptr_eq(parts_of(&parts, 2), &parts.list[3]);
	ck_assert_ptr_null(parts_of(&parts, 1));
	for (unsigned i = 0; i < 3; i++)
		ck_assert_uint_ne(parts.list[i].by, PARTS_NONE);
}

TEST(others_are_refused)
{
	struct parts parts = {.n = 0};
	ck_assert_int_eq(add(&parts, 1, 3, 5, "a", "b"), 0);
	ck_assert_int_eq(add(&parts, 2, 3, 5, "x", "b"), NPUMEM_INVALID);
	ck_assert_int_eq(add(&parts, 2, 3, 5, "a", "x"), NPUMEM_INVALID);
	ck_assert_int_eq(add(&parts, 2, 4, 5, "a", "b"), NPUMEM_INVALID);
	ck_assert_uint_eq(parts.n, 1);
}

TEST(what_is_missing)
{
	struct sweep_part whole;
	struct parts parts = {.n = 0};
	ck_assert_int_eq(add(&parts, 4, 4, 5, "a", "b"), 0);
	ck_assert_int_eq(add(&parts, 2, 4, 6, "a", "b"), 0);
	json_t *missing = parts_missing(&parts);
	ck_assert_uint_eq(json_array_size(missing), 2);
	ck_assert_int_eq(json_integer_value(json_array_get(missing, 0)), 1);
	ck_assert_int_eq(json_integer_value(json_array_get(missing, 1)), 3);
	json_decref(missing);
	parts_whole(&parts, &whole);
	ck_assert(whole.shard == 1 && whole.n_shards == 1 && whole.time == 6 && !strcmp(whole.id, "a"));
}
