#include "client/ctl/core/sweep/sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/test.h"

static void begin(struct sweep *sweep, const char *shard, unsigned n)
{
	char name[24];
	sweep_init(sweep, "conform");
	ck_assert_int_eq(sweep_shard(sweep, shard, NULL), 0);
	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "case %u", i);
		sweep_add(sweep, name);
	}
}

/* The shards as digits. */
static const char *assigned(struct sweep *sweep)
{
	static char text[64];
	sweep_assign(sweep);
	for (size_t i = 0; i < sweep->n; i++)
		text[i] = (char)('0' + sweep->items[i].shard);
	text[sweep->n] = 0;
	return text;
}

TEST(shards_are_read)
{
	static const char *const bad[] = {"",
					  "1",
					  "/",
					  "1/",
					  "/2",
					  "0/2",
					  "3/2",
					  "-1/2",
					  "1/-2",
					  "1/2/3",
					  "a/b",
					  "1/4097",
					  "1/2 x",
					  "1111111111111111111111111111/2",
					  "18446744073709551617/2"};
	struct npumem_error error;
	struct sweep sweep;
	sweep_init(&sweep, "conform");
	ck_assert(sweep.shard == 1 && sweep.n_shards == 1 && !sweep.is_shared);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_msg(sweep_shard(&sweep, bad[i], &error) == NPUMEM_INVALID, "%s", bad[i]);
		ck_assert(sweep.n_shards == 1 && !sweep.is_shared);
	}
	ck_assert_int_eq(sweep_shard(&sweep, "7/4096", &error), 0);
	ck_assert(sweep.shard == 7 && sweep.n_shards == 4096 && sweep.is_shared);
}

TEST(equal_costs_go_round)
{
	struct sweep sweep;
	begin(&sweep, "2/3", 7);
	ck_assert_str_eq(assigned(&sweep), "1231231");
	ck_assert(!sweep_is_ours(&sweep, 0) && sweep_is_ours(&sweep, 1) && sweep_is_ours(&sweep, 4));
	ck_assert_uint_eq(sweep_n_ours(&sweep), 2);
	begin(&sweep, "5/9", 2);
	ck_assert_str_eq(assigned(&sweep), "12");
	ck_assert_uint_eq(sweep_n_ours(&sweep), 0);
}

TEST(the_longest_first)
{
	static const double costs[] = {1, 2, 7, 3, 2, 5};
	struct sweep sweep;
	begin(&sweep, "1/2", 6);
	for (unsigned i = 0; i < 6; i++)
		sweep.items[i].cost = costs[i];
	/* 7 to 1; 5 and 3 to 2; 2 (the first) to 1; 2 to 2, which has 8 of 9; then 1 to 1. */
	ck_assert_str_eq(assigned(&sweep), "111222");
}

/* Against the plain search for the least loaded. */
TEST(as_by_searching)
{
	struct sweep sweep;
	double loads[9] = {0};
	begin(&sweep, "1/9", 60);
	for (size_t i = 0; i < sweep.n; i++)
		sweep.items[i].cost = (double)(1000 - i + i * 7 % 5 * (i % 3 == 0 ? 0 : 1) / 8);
	sweep_assign(&sweep);
	for (size_t i = 0; i < sweep.n; i++) {
		unsigned least = 0;
		for (unsigned k = 1; k < 9; k++)
			if (loads[k] < loads[least])
				least = k;
		ck_assert_uint_eq(sweep.items[i].shard, least + 1);
		loads[least] += sweep.items[i].cost;
	}
}

static int costs_of(struct sweep *sweep, const char *text, struct npumem_error *error)
{
	char path[] = "/tmp/npumem-costs-XXXXXX";
	int fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	int status = sweep_costs(sweep, path, error);
	unlink(path);
	return status;
}

TEST(costs_of_a_report)
{
	struct npumem_error error;
	struct sweep sweep;
	begin(&sweep, "1/2", 4);
	ck_assert_int_eq(costs_of(&sweep,
				  "{\"items\": [{\"name\": \"case 0\", \"seconds\": 1.0}, {\"name\": \"other\", "
				  "\"seconds\": 9}, {\"name\": \"case 2\", \"seconds\": 4}]}",
				  &error),
			 0);
	ck_assert(sweep.items[0].cost == 1 && sweep.items[1].cost == 2.5 && sweep.items[2].cost == 4 &&
		  sweep.items[3].cost == 2.5);
}

TEST(bad_costs)
{
	static const char *const bad[] = {
		"",
		"{}",
		"[1]",
		"{\"items\": {}}",
		"{\"items\": [1]}",
		"{\"items\": [{\"name\": \"other\", \"seconds\": 1}]}",
		"{\"items\": [{\"name\": \"case 0\"}]}",
		"{\"items\": [{\"name\": \"case 0\", \"seconds\": \"1\"}]}",
		"{\"items\": [{\"name\": \"case 0\", \"seconds\": -1}]}",
		"{\"items\": [{\"name\": \"case 0\", \"seconds\": 1e300}]}",
		"{\"items\": [{\"seconds\": 1}]}",
	};
	struct npumem_error error;
	struct sweep sweep;
	begin(&sweep, "1/2", 2);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		error = (struct npumem_error){.status = 0};
		ck_assert_msg(costs_of(&sweep, bad[i], &error) == NPUMEM_INVALID, "%s", bad[i]);
		ck_assert_msg(*error.message, "%s", bad[i]);
	}
	ck_assert_int_eq(sweep_costs(&sweep, "/nonexistent/r.json", &error), NPUMEM_INVALID);
}

TEST(what_is_the_same_sweep)
{
	struct sweep_part one, other;
	struct sweep sweep;
	begin(&sweep, "1/2", 3);
	assigned(&sweep);
	sweep_part(&sweep, &one);
	sweep_part(&sweep, &other);
	ck_assert_str_ne(one.run, other.run);
	begin(&sweep, "2/2", 3);
	assigned(&sweep);
	sweep_part(&sweep, &other);
	ck_assert_str_eq(one.id, other.id);
	ck_assert_str_eq(one.split, other.split);
	/* Other costs, or another number of shards: another split. */
	sweep.items[2].cost = 9;
	assigned(&sweep);
	sweep_part(&sweep, &other);
	ck_assert_str_eq(one.id, other.id);
	ck_assert_str_ne(one.split, other.split);
	begin(&sweep, "2/3", 3);
	assigned(&sweep);
	sweep_part(&sweep, &other);
	ck_assert_str_eq(one.id, other.id);
	ck_assert_str_ne(one.split, other.split);
	sweep_mix(&sweep, "x", 1);
	sweep_part(&sweep, &other);
	ck_assert_str_ne(one.id, other.id);
}

TEST(names_that_are_no_text)
{
	struct sweep_part part;
	struct sweep sweep;
	json_t *report = json_object();
	sweep_init(&sweep, "check");
	sweep_add(&sweep, "a\xff\xfe");
	sweep_add(&sweep, "é");
	ck_assert_str_eq(sweep.items[0].name, "a??");
	ck_assert_str_eq(sweep.items[1].name, "é");
	sweep.items[0].ran = true;
	sweep_part(&sweep, &part);
	sweep_json(&sweep, &part, report);
	ck_assert_uint_eq(json_array_size(json_object_get(report, "items")), 1);
	json_decref(report);
}
