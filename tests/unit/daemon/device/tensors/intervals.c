/* The tree of intervals against a plain list, in every order of coming and going. */
#include "daemon/device/tensors/intervals.h"

#include "tests/support/oracle.h"
#include "tests/support/test.h"

enum { MOST = 300 };

struct list {
	struct intervals tree;
	struct interval all[MOST];
	bool in[MOST];
	uint64_t random;
};

static void add(struct list *list, unsigned i, uint64_t from, uint64_t to)
{
	list->all[i] = (struct interval){.from = from, .to = to, .id = i};
	list->in[i] = true;
	intervals_add(&list->tree, &list->all[i]);
}

static void take(struct list *list, unsigned i)
{
	list->in[i] = false;
	intervals_remove(&list->tree, &list->all[i]);
}

static void sound(const struct list *list)
{
	const char *wrong = intervals_check(&list->tree);
	ck_assert_msg(!wrong, "%s", wrong);
}

/* What intervals_next should find. */
static const struct interval *naive(const struct list *list, const struct interval *after, uint64_t from,
				    uint64_t to)
{
	const struct interval *best = NULL;
	for (unsigned i = 0; i < MOST; i++) {
		const struct interval *x = &list->all[i];
		if (!list->in[i] || x->to <= from || x->from >= to)
			continue;
		if (after && (x->from < after->from || (x->from == after->from && x->id <= after->id)))
			continue;
		if (!best || x->from < best->from || (x->from == best->from && x->id < best->id))
			best = x;
	}
	return best;
}

static void compare(const struct list *list, uint64_t from, uint64_t to)
{
	struct intervals_walk walk;
	const struct interval *at = NULL;
	intervals_begin(&list->tree, from, to, &walk);
	do {
		const struct interval *expected = naive(list, at, from, to);
		if (at)
			ck_assert_ptr_eq(intervals_after(&list->tree, from, to, at->from, at->id), expected);
		at = intervals_next(&walk);
		ck_assert_ptr_eq(at, expected);
	} while (at);
	ck_assert_ptr_null(intervals_next(&walk));
}

TEST(as_a_plain_list, .to = 8)
{
	struct list list = {.random = (uint64_t)_i + 1};
	for (unsigned step = 0; step < 400; step++) {
		unsigned i = oracle_random(&list.random) % (_i % 2 ? 40 : MOST);
		uint64_t from = (uint64_t)oracle_between(&list.random, 0, _i < 4 ? 30 : 4000);
		if (list.in[i])
			take(&list, i);
		else
			add(&list, i, from, from + (uint64_t)oracle_between(&list.random, 1, _i % 3 ? 8 : 2000));
		sound(&list);
		from = (uint64_t)oracle_between(&list.random, 0, 4200);
		if (step % 8 == 0)
			compare(&list, from, from + (uint64_t)oracle_between(&list.random, 1, 200));
		if (step % 64 == 0)
			compare(&list, 0, UINT64_MAX);
	}
}

/* Rising, falling, and from both ends: what a tree without balance makes lists of. */
TEST(stays_low)
{
	for (unsigned order = 0; order < 3; order++) {
		struct list list = {.random = 1};
		for (unsigned i = 0; i < MOST; i++) {
			uint64_t from = order == 0 ? i : order == 1 ? MOST - i : i % 2 ? MOST + i : MOST - i;
			add(&list, i, from, from + 1 + i % 50);
		}
		sound(&list);
		ck_assert_uint_le(list.tree.root->height, 11);
		for (unsigned i = 0; i < MOST - 1; i++) {
			take(&list, order == 2 ? MOST - 1 - i : i);
			sound(&list);
		}
		ck_assert_uint_eq(list.tree.root->height, 1);
		take(&list, order == 2 ? 0 : MOST - 1);
		ck_assert_ptr_null(list.tree.root);
	}
}

TEST(the_check_can_fail)
{
	struct list list = {.random = 1};
	for (unsigned i = 0; i < 7; i++)
		add(&list, i, i, i + 2);
	list.all[0].to = 100;
	ck_assert_str_eq(intervals_check(&list.tree), "an interval's reach or height is wrong");
	list.all[0].to = 2;
	sound(&list);
	list.all[3].from = 5;
	ck_assert_str_eq(intervals_check(&list.tree), "an interval is out of order");
	list.all[3].from = 3;
	list.all[3].sub[1] = NULL;
	list.all[3].height = 3;
	list.all[3].reach = 5;
	ck_assert_str_eq(intervals_check(&list.tree), "the tree of intervals is out of balance");
}
