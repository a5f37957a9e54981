#include "daemon/service/tensors/names.h"

#include <stdio.h>

#include "tests/unit/daemon/service/world.h"

TEST(what_a_name_may_be)
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

enum { MANY = 3000 };

/* A record lies behind its tensor, here a root. */
struct owned {
	struct tensor tensor;
	struct record record;
};

static void fill(struct names *names, struct owned *owned)
{
	for (unsigned i = 0; i < MANY; i++) {
		owned[i].record.uid = i % 3;
		snprintf(owned[i].record.name, sizeof(owned[i].record.name), "layer.%u", i / 3);
		ck_assert_ptr_null(names_find(names, owned[i].record.uid, owned[i].record.name));
		names_add(names, &owned[i].record);
	}
}

TEST(what_was_put_in_is_found_and_goes_again)
{
	struct owned *owned = calloc(MANY, sizeof(*owned));
	struct names names;
	ck_assert_int_eq(names_init(&names, &heap_libc, 1), 0);
	fill(&names, owned);
	ck_assert_uint_eq(names.n, MANY);
	ck_assert_uint_ge(names.n_buckets, MANY / 2);
	ck_assert_ptr_null(names_find(&names, 3, "layer.1"));
	ck_assert_ptr_null(names_find(&names, 0, "layer"));
	ck_assert_ptr_null(names_find(&names, 0, ""));
	for (unsigned i = 0; i < MANY; i++)
		ck_assert_ptr_eq(names_find(&names, i % 3, owned[i].record.name), &owned[i].record);
	for (unsigned i = 0; i < MANY; i += 2)
		names_remove(&names, &owned[i].record);
	for (unsigned i = 0; i < MANY; i++)
		ck_assert_ptr_eq(names_find(&names, i % 3, owned[i].record.name), i % 2 ? &owned[i].record : NULL);
	names_deinit(&names);
	free(owned);
}

TEST(without_memory_to_grow_nothing_is_lost)
{
	struct owned *owned = calloc(MANY, sizeof(*owned));
	enum { INIT_ALLOCS = 2 };
	for (unsigned fail_at = 1; fail_at < INIT_ALLOCS + 12; fail_at++) {
		struct world heap_only = {.fail_at = fail_at};
		struct names names;
		int status;
		heap_only.heap = (struct heap){world_alloc, world_release, &heap_only};
		status = names_init(&names, &heap_only.heap, 1);
		ck_assert_int_eq(status != 0, fail_at <= INIT_ALLOCS);
		memset(owned, 0, MANY * sizeof(*owned));
		if (!status)
			fill(&names, owned);
		for (unsigned i = 0; i < MANY && !status; i++)
			ck_assert_ptr_eq(names_find(&names, i % 3, owned[i].record.name), &owned[i].record);
		if (!status)
			names_deinit(&names);
		ck_assert_uint_eq(heap_only.n_alive, 0);
	}
	free(owned);
}

static size_t most_at_once;

static void *alloc_noting(void *ctx, size_t bytes)
{
	(void)ctx;
	most_at_once = bytes > most_at_once ? bytes : most_at_once;
	return malloc(bytes);
}

/* What one name costs does not grow with how many there are: a table of 8 bytes each is not moved at once. */
TEST(no_name_pays_for_all)
{
	enum { N = 200000 };
	struct owned *owned = calloc(N, sizeof(*owned));
	const struct heap heap = {alloc_noting, heap_libc.free, NULL};
	struct names names;
	most_at_once = 0;
	ck_assert_int_eq(names_init(&names, &heap, 1), 0);
	for (unsigned i = 0; i < N; i++) {
		size_t n_buckets = names.n_buckets;
		snprintf(owned[i].record.name, sizeof(owned[i].record.name), "t%u", i);
		names_add(&names, &owned[i].record);
		ck_assert_uint_le(names.n_buckets - n_buckets, 1);
	}
	ck_assert_uint_ge(names.n_buckets, N - 1);
	ck_assert_uint_le(most_at_once, N * sizeof(void *) / 100);
	names_deinit(&names);
	free(owned);
}
