/* Free blocks that are not of whole lines, against a list of them: what fits into which, and rings at their worst.
 */
#include "daemon/device/arena/odd_blocks.h"

#include <check.h>
#include <errno.h>

#include "daemon/device/arena/free_blocks.h"
#include "tests/support/oracle.h"
#include "tests/unit/daemon/device/scarce.h"

enum { BLOCKS = 3000, SIZE = 1 << 16 };

struct field {
	struct odd_blocks odd;
	struct block blocks[BLOCKS];
	unsigned n; /* the first of `blocks` are in it */
};

static uint32_t fit(const struct block *block, unsigned align_log)
{
	uint32_t front = -block->offset & ((UINT32_C(1) << align_log) - 1);
	return block->size > front ? block->size - front : 0;
}

static uint32_t most(const struct field *field, unsigned align_log)
{
	uint32_t best = 0;
	for (unsigned i = 0; i < field->n; i++)
		if (fit(&field->blocks[i], align_log) > best)
			best = fit(&field->blocks[i], align_log);
	return best;
}

/* The size of the smallest block that would do. */
static uint32_t smallest(const struct field *field, uint32_t size, unsigned align_log)
{
	uint32_t best = UINT32_MAX;
	for (unsigned i = 0; i < field->n; i++)
		if (fit(&field->blocks[i], align_log) >= size && field->blocks[i].size < best)
			best = field->blocks[i].size;
	return best;
}

static void ask(const struct field *field, uint64_t *random, uint32_t size_max)
{
	unsigned align_log = (unsigned)oracle_between(random, 0, 5);
	uint32_t size = (uint32_t)oracle_between(random, 1, size_max), best = smallest(field, size, align_log);
	const struct block *found = odd_blocks_find(&field->odd, size, align_log);
	const char *wrong = odd_blocks_check(&field->odd);
	ck_assert_msg(!wrong, "%s", wrong);
	ck_assert_uint_eq(odd_blocks_most(&field->odd, align_log), most(field, align_log));
	ck_assert(!found == (best == UINT32_MAX));
	if (!found)
		return;
	ck_assert_uint_ge(fit(found, align_log), size);
	ck_assert_uint_lt(found->size, best + ODD_LINE);
}

static void add(struct field *field, uint32_t offset, uint32_t size)
{
	struct block *block = &field->blocks[field->n++];
	*block = (struct block){.offset = offset, .size = size};
	odd_blocks_add(&field->odd, block);
}

/* The last takes its place, and so goes out and in again. */
static void remove_at(struct field *field, unsigned k)
{
	struct block *last = &field->blocks[--field->n];
	odd_blocks_remove(&field->odd, &field->blocks[k]);
	if (k == field->n)
		return;
	odd_blocks_remove(&field->odd, last);
	field->blocks[k] = (struct block){.offset = last->offset, .size = last->size};
	odd_blocks_add(&field->odd, &field->blocks[k]);
}

static const uint32_t size_maxima[] = {3, 40, 1023, 1100, 5000, SIZE};

START_TEST(against_a_list)
{
	static struct field field;
	uint64_t random = 7;
	uint32_t size_max = size_maxima[_i];
	memset(&field, 0, sizeof(field));
	ck_assert_int_eq(odd_blocks_init(&field.odd, &heap_libc, SIZE), 0);
	for (int i = 0; i < 4000; i++) {
		/* Fills up, and is emptied again. */
		if (field.n && (field.n == 150 || oracle_random(&random) % 8 < (i / 500 % 2 ? 6 : 2)))
			remove_at(&field, (unsigned)oracle_between(&random, 0, field.n - 1));
		else
			add(&field,
			    (uint32_t)oracle_between(&random, 0, 1000) * 32 +
				    (uint32_t)oracle_between(&random, 1, 31),
			    (uint32_t)oracle_between(&random, 1, size_max));
		ask(&field, &random, size_max);
	}
	while (field.n)
		remove_at(&field, 0);
	ck_assert_ptr_null(odd_blocks_check(&field.odd));
	ck_assert_uint_eq(odd_blocks_most(&field.odd, 0), 0);
	ck_assert_ptr_null(odd_blocks_find(&field.odd, 1, 0));
	odd_blocks_deinit(&field.odd, &heap_libc);
}
END_TEST

/* As many leaders as a ring can have, each with a pile. */
START_TEST(the_largest_ring)
{
	static struct field field;
	uint64_t random = 9;
	memset(&field, 0, sizeof(field));
	ck_assert_int_eq(odd_blocks_init(&field.odd, &heap_libc, SIZE), 0);
	for (unsigned copy = 0; copy < 2; copy++)
		for (uint32_t size = 0; size < 32; size++)
			for (uint32_t start = 1; start < 32; start++)
				add(&field, copy * 6400 + start, 3200 + size);
	for (int i = 0; i < 40; i++)
		ask(&field, &random, 3240);
	/* The last that has room for so much at the largest alignment. */
	ck_assert_uint_eq(odd_blocks_most(&field.odd, 5), 3230);
	for (unsigned k = field.n; k-- > 0;)
		if (fit(&field.blocks[k], 5) == 3230)
			remove_at(&field, k);
	ck_assert_ptr_null(odd_blocks_find(&field.odd, 3230, 5));
	ck_assert_uint_eq(odd_blocks_most(&field.odd, 5), 3229);
	ck_assert_ptr_nonnull(odd_blocks_find(&field.odd, 3229, 5));
	odd_blocks_deinit(&field.odd, &heap_libc);
}
END_TEST

START_TEST(no_memory)
{
	struct scarce scarce;
	scarce_init(&scarce);
	for (int i = 0; i < 2; i++) {
		struct odd_blocks odd = {.n = 0};
		scarce_arm(&scarce, i);
		ck_assert_int_eq(odd_blocks_init(&odd, &scarce.heap, 100), -ENOMEM);
		odd_blocks_deinit(&odd, &scarce.heap);
		ck_assert_int_eq(scarce.n_live, 0);
	}
}
END_TEST

/* With a member set to something else for the time of one look. */
#define WRONG(member, value, text)                                                                                \
	do {                                                                                                      \
		__typeof__(member) was = member;                                                                  \
		member = value;                                                                                   \
		ck_assert_pstr_eq(odd_blocks_check(&field.odd), text);                                            \
		member = was;                                                                                     \
	} while (0)

START_TEST(the_check_can_fail)
{
	static const char foreign_to_ring[] = "a block is in a ring it does not belong to";
	static const char foreign_to_pile[] = "a block is in a pile it does not belong to";
	static struct field field;
	struct block *leader = field.blocks, *other = field.blocks + 1, *second = field.blocks + 2,
		     *first = field.blocks + 3;
	memset(&field, 0, sizeof(field));
	ck_assert_int_eq(odd_blocks_init(&field.odd, &heap_libc, SIZE), 0);
	add(&field, 1, 40);
	add(&field, 2, 40);
	add(&field, 1 + ODD_LINE, 40);
	add(&field, 1 + 2 * ODD_LINE, 40);
	add(&field, 0, 2 * ODD_LINE - 1); /* a ring of its own */
	ck_assert(leader->leads && other->leads && leader->pile == first && first->next == second);
	ck_assert_ptr_null(odd_blocks_check(&field.odd));
	WRONG(other->taken, true, foreign_to_ring);
	WRONG(other->leads, false, foreign_to_ring);
	WRONG(other->size, 41, foreign_to_ring);
	field.blocks[4].size++; /* whole lines */
	ck_assert_pstr_eq(odd_blocks_check(&field.odd), foreign_to_ring);
	field.blocks[4].size--;
	WRONG(other->prev, other, "a ring is broken");
	WRONG(other->offset, 1, "two piles are alike");
	WRONG(first->taken, true, foreign_to_pile);
	WRONG(first->leads, true, foreign_to_pile);
	WRONG(second->offset, 2, foreign_to_pile);
	WRONG(second->prev, leader, "a pile is broken");
	WRONG(field.odd.n, 0, "a ring is broken");
	WRONG(field.odd.n, 2, "a pile is broken");
	WRONG(field.odd.n, 6, "an odd block is in no pile");
	ck_assert_ptr_null(odd_blocks_check(&field.odd));
	odd_blocks_deinit(&field.odd, &heap_libc);
}
END_TEST

Suite *suite_odd_blocks(void)
{
	Suite *suite = suite_create("device/odd_blocks");
	TCase *tcase = tcase_create("odd_blocks");
	tcase_add_loop_test(tcase, against_a_list, 0, sizeof(size_maxima) / sizeof(size_maxima[0]));
	tcase_add_test(tcase, the_largest_ring);
	tcase_add_test(tcase, no_memory);
	tcase_add_test(tcase, the_check_can_fail);
	suite_add_tcase(suite, tcase);
	return suite;
}
