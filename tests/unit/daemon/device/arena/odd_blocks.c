/* Free blocks that are not of whole lines, against a list of them: what fits into which, and lists of leaders at
 * their worst. */
#include "daemon/device/arena/odd_blocks.h"

#include <errno.h>

#include "tests/support/oracle.h"
#include "tests/support/test.h"
#include "tests/unit/daemon/device/scarce.h"

enum { BLOCKS = 3000, SIZE = 1 << 16 };

static struct block edge = {.offset = UINT32_MAX};

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
	ck_assert_uint_lt(found->size, best + LINE_QUANTA);
}

static void put(struct field *field, unsigned k, uint32_t offset, uint32_t size)
{
	field->blocks[k] = (struct block){.offset = offset, .size = size, .sub = {&edge, &edge}};
	odd_blocks_add(&field->odd, &field->blocks[k]);
}

static void add(struct field *field, uint32_t offset, uint32_t size)
{
	put(field, field->n++, offset, size);
}

/* The last takes its place, and so goes out and in again. */
static void remove_at(struct field *field, unsigned k)
{
	struct block *last = &field->blocks[--field->n];
	odd_blocks_remove(&field->odd, &field->blocks[k]);
	if (k == field->n)
		return;
	odd_blocks_remove(&field->odd, last);
	put(field, k, last->offset, last->size);
}

static const uint32_t size_maxima[] = {3, 40, 1023, 1100, 5000, SIZE};

TEST(against_a_list, .to = sizeof(size_maxima) / sizeof(size_maxima[0]))
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

/* As many leaders as a list can have, each with others alike. */
TEST(the_longest_list)
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

TEST(no_memory)
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

/* With a member set to something else for the time of one look. */
#define WRONG(member, value, text)                                                                                \
	do {                                                                                                      \
		__typeof__(1 ? member : member) was = member;                                                     \
		member = value;                                                                                   \
		ck_assert_pstr_eq(odd_blocks_check(&field.odd), text);                                            \
		member = was;                                                                                     \
	} while (0)

TEST(the_check_can_fail)
{
	static const char foreign[] = "a block is in a heap it does not belong to",
			  order[] = "a heap is out of order";
	static const char leaders[] = "leaders are out of order";
	static struct field field;
	struct block *leader = field.blocks + 3, *other = field.blocks + 1, *second = field.blocks + 2,
		     *third = field.blocks;
	memset(&field, 0, sizeof(field));
	ck_assert_int_eq(odd_blocks_init(&field.odd, &heap_libc, SIZE), 0);
	add(&field, 1 + 2 * LINE_QUANTA, 40);
	add(&field, 2, 40);
	add(&field, 1 + LINE_QUANTA, 40);
	add(&field, 1, 40);
	add(&field, 0, 2 * LINE_QUANTA - 1); /* of another key */
	ck_assert(leader->leads && other->leads && leader->next == other && !second->leads && !third->leads);
	ck_assert_ptr_null(odd_blocks_check(&field.odd));
	WRONG(other->taken, true, foreign);
	WRONG(other->leads, false, leaders);
	WRONG(other->link, &third->next, leaders);
	WRONG(other->offset, 1, leaders);
	WRONG(other->size, 41, "a block is in a list it does not belong to");
	field.blocks[4].size++; /* whole lines */
	ck_assert_pstr_eq(odd_blocks_check(&field.odd), "a block is in a list it does not belong to");
	field.blocks[4].size--;
	WRONG(second->taken, true, foreign);
	WRONG(second->leads, true, foreign);
	WRONG(second->offset, 2 + LINE_QUANTA, foreign);
	WRONG(leader->offset, 1 + 4 * LINE_QUANTA, order);
	WRONG(second->link, &leader->next, order);
	WRONG(field.odd.leaders[40], NULL, "a key has no blocks");
	WRONG(field.odd.n, 0, "a heap has too many blocks");
	WRONG(field.odd.n, 2, "a heap has too many blocks");
	WRONG(field.odd.n, 6, "an odd block is in no heap");
	ck_assert_ptr_null(odd_blocks_check(&field.odd));
	odd_blocks_deinit(&field.odd, &heap_libc);
}
