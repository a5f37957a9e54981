/* How the room of a round is divided among users. */
#include "daemon/store/log/shares.h"
#include "tests/support/test.h"

enum { PIECE = 64 << 10 };

static const char users[SHARES_USERS_MAX + 2];
static struct shares now, before;

/* How many bytes the user gets into the round, in pieces. */
static uint64_t fill(const void *user)
{
	uint64_t bytes = 0;
	for (; shares_have_room(&now, &before, user, PIECE); bytes += PIECE)
		shares_add(&now, user, PIECE);
	return bytes;
}

static void next_round(void)
{
	struct shares older = before;
	before = now;
	now = older;
	shares_next(&now);
}

static void begin(void)
{
	now = before = (struct shares){.n = 0};
}

TEST(one_user_has_the_whole_round)
{
	begin();
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_uint_eq(fill(&users[0]), SHARES_ALONE);
		next_round();
	}
}

TEST(a_user_that_comes_finds_room)
{
	begin();
	fill(&users[0]);
	ck_assert_uint_eq(fill(&users[1]), SHARES_TOGETHER / 2);
	ck_assert(!shares_have_room(&now, &before, &users[0], 1));
}

TEST(several_have_equal_shares)
{
	begin();
	fill(&users[0]);
	fill(&users[1]);
	next_round();
	ck_assert_uint_eq(fill(&users[0]), SHARES_TOGETHER / 2);
	ck_assert_uint_eq(fill(&users[1]), SHARES_TOGETHER / 2);
	/* Rounds without the second. */
	for (unsigned i = 0; i < 2; i++) {
		next_round();
		ck_assert_uint_eq(fill(&users[0]), SHARES_TOGETHER / 2);
	}
	next_round();
	ck_assert_uint_eq(fill(&users[0]), SHARES_ALONE);
}

/* The round that follows its answer may be taken before the user comes again. */
TEST(a_user_that_comes_in_each_second_round_is_not_alone)
{
	begin();
	for (unsigned i = 0; i < 6; i++) {
		if (i % 2 == 0)
			shares_add(&now, &users[1], 1);
		ck_assert_uint_eq(fill(&users[0]), SHARES_TOGETHER / 2);
		next_round();
	}
}

/* So many that are known from before leave places for those that come. */
TEST(users_of_earlier_rounds_leave_places)
{
	begin();
	for (unsigned i = 0; i < SHARES_USERS_MAX; i++)
		shares_add(&now, &users[i], PIECE);
	next_round();
	next_round();
	ck_assert_uint_eq(now.n, SHARES_USERS_MAX / 2);
	for (unsigned i = 0; i < SHARES_USERS_MAX / 2; i++)
		shares_add(&now, &users[i + SHARES_USERS_MAX / 2], 1);
	ck_assert_uint_eq(now.n, SHARES_USERS_MAX);
}

/* Also a change that is larger than its user's share. */
TEST(an_empty_share_takes_any_change)
{
	begin();
	for (unsigned i = 0; i < SHARES_USERS_MAX; i++) {
		ck_assert(shares_have_room(&now, &before, &users[i], SHARES_ALONE + 1));
		shares_add(&now, &users[i], SHARES_ALONE + 1);
		ck_assert(!shares_have_room(&now, &before, &users[i], 1));
	}
}

TEST(users_beyond_the_list_share_the_last_place)
{
	begin();
	for (unsigned i = 0; i < SHARES_USERS_MAX - 1; i++)
		shares_add(&now, &users[i], 1);
	for (unsigned i = 0; i < 3; i++)
		shares_add(&now, &users[SHARES_USERS_MAX - 1 + i], PIECE);
	ck_assert_uint_eq(now.n, SHARES_USERS_MAX);
	ck_assert(!shares_have_room(&now, &before, &users[SHARES_USERS_MAX], 1));
	next_round();
	ck_assert(shares_have_room(&now, &before, &users[SHARES_USERS_MAX], 1));
}

/* A user that fills memory all the time still changes tables, and others that do count it. */
TEST(changes_of_tables_have_a_share_of_their_own)
{
	begin();
	fill(&users[0]);
	ck_assert(shares_have_cells(&now, &before, &users[0]));
	shares_add_cells(&now, &users[0], SHARES_ALONE - 1);
	ck_assert(shares_have_cells(&now, &before, &users[0]));
	shares_add_cells(&now, &users[0], 1);
	ck_assert(!shares_have_cells(&now, &before, &users[0]));
	ck_assert(shares_have_cells(&now, &before, &users[1]));
	ck_assert_uint_eq(fill(&users[1]), SHARES_TOGETHER / 2);
	shares_add_cells(&now, &users[1], SHARES_TOGETHER / 2);
	ck_assert(!shares_have_cells(&now, &before, &users[1]));
	next_round();
	ck_assert(shares_have_cells(&now, &before, &users[0]));
	shares_add_cells(&now, &users[0], SHARES_TOGETHER / 2);
	ck_assert(!shares_have_cells(&now, &before, &users[0]));
	/* Changes of tables take nothing of what it may write. */
	ck_assert_uint_eq(fill(&users[0]), SHARES_TOGETHER / 2);
}
