#include "daemon/service/names.h"

#include <check.h>
#include <stdio.h>

#include "tests/unit/daemon/service/world.h"

START_TEST(what_a_name_may_be)
{
	static const char *const good[] = {"a", "x.y-z_0/1", "0a", "-", "/", "A/B/C.weights_0-1"};
	static const char *const bad[] = {"",	 "0",	  "123", "a:b", "a b", "\xc3\xa4",
					  "a\n", "a\x7f", "\"",	 "a,b", "x="};
	char longest[NPUMEM_NAME_BYTES_MAX + 2];
	struct npumem_error error;

	npumem_error_clear(&error);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		ck_assert_msg(names_check(good[i], &error) == 0, "%s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(names_check(bad[i], NULL) == NPUMEM_INVALID, "%s", bad[i]);
	memset(longest, 'a', sizeof(longest));
	longest[NPUMEM_NAME_BYTES_MAX] = 0;
	ck_assert_int_eq(names_check(longest, &error), 0);
	longest[NPUMEM_NAME_BYTES_MAX] = 'a';
	longest[NPUMEM_NAME_BYTES_MAX + 1] = 0;
	ck_assert_int_eq(names_check(longest, &error), NPUMEM_INVALID);
	ck_assert_ptr_nonnull(strstr(error.message, "63"));
}
END_TEST

enum { MANY = 3000 };

static void fill(struct names *names, struct record *records)
{
	for (unsigned i = 0; i < MANY; i++) {
		records[i].uid = i % 3;
		snprintf(records[i].name, sizeof(records[i].name), "layer.%u", i / 3);
		ck_assert_ptr_null(names_find(names, records[i].uid, records[i].name));
		names_add(names, &records[i]);
	}
}

START_TEST(what_was_put_in_is_found_and_goes_again)
{
	struct record *records = calloc(MANY, sizeof(*records));
	struct names names;

	ck_assert_int_eq(names_init(&names, &heap_libc, 1), 0);
	fill(&names, records);
	ck_assert_uint_eq(names.n, MANY);
	ck_assert_uint_ge(names.n_buckets, MANY / 2);
	ck_assert_ptr_null(names_find(&names, 3, "layer.1"));
	ck_assert_ptr_null(names_find(&names, 0, "layer"));
	ck_assert_ptr_null(names_find(&names, 0, ""));
	for (unsigned i = 0; i < MANY; i++)
		ck_assert_ptr_eq(names_find(&names, i % 3, records[i].name), &records[i]);
	for (unsigned i = 0; i < MANY; i += 2)
		names_remove(&names, &records[i]);
	for (unsigned i = 0; i < MANY; i++)
		ck_assert_ptr_eq(names_find(&names, i % 3, records[i].name), i % 2 ? &records[i] : NULL);
	names_deinit(&names);
	free(records);
}
END_TEST

START_TEST(without_memory_to_grow_nothing_is_lost)
{
	struct record *records = calloc(MANY, sizeof(*records));
	struct world heap_only = {.fail_at = 2};
	struct names names;

	heap_only.heap = (struct heap){world_alloc, world_release, &heap_only};
	ck_assert_int_eq(names_init(&names, &heap_only.heap, 1), 0);
	fill(&names, records);
	for (unsigned i = 0; i < MANY; i++)
		ck_assert_ptr_eq(names_find(&names, i % 3, records[i].name), &records[i]);
	names_deinit(&names);
	ck_assert_uint_eq(heap_only.n_alive, 0);
	heap_only.n_allocs = 0;
	heap_only.fail_at = 1;
	ck_assert_int_lt(names_init(&names, &heap_only.heap, 1), 0);
	free(records);
}
END_TEST

Suite *suite_names(void)
{
	Suite *suite = suite_create("service/names");
	TCase *tcase = tcase_create("all");

	tcase_add_test(tcase, what_a_name_may_be);
	tcase_add_test(tcase, what_was_put_in_is_found_and_goes_again);
	tcase_add_test(tcase, without_memory_to_grow_nothing_is_lost);
	suite_add_tcase(suite, tcase);
	return suite;
}
