/* What a uid may have: each limit at its edge, limits of one's own, the share that newcomers find. */
#include "daemon/service/limits.h"

#include "tests/support/test.h"

static const struct npumem_geometry geometry = {.n_npus = 8, .npu_bytes = 8192, .n_banks = 8, .eu_bytes = 128};
static struct limits_table table;
static struct npumem_error error;

static void begin(void)
{
	limits_init(&table, &heap_libc, &geometry, 500);
}

static void end(void)
{
	limits_deinit(&table);
}

static int ask(struct limits_user *user, enum limits_key key, uint64_t more)
{
	npumem_error_clear(&error);
	return limits_check(&table, user, key, more, &error);
}

TEST(limits_hold_at_their_edge)
{
	struct limits_user *user = limits_take(&table, 1001);
	table.ordinary.most[LIMITS_TENSORS] = 10;
	limits_charge(&table, user, LIMITS_TENSORS, 7);
	ck_assert_int_eq(ask(user, LIMITS_TENSORS, 3), 0);
	ck_assert_int_eq(ask(user, LIMITS_TENSORS, 4), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_str_eq(error.message, "uid 1001 has 7 tensors, and 4 more would pass its limit of 10");
	ck_assert_int_eq(npumem_error_find(&error, "most", -1), 10);
	ck_assert_int_eq(ask(user, LIMITS_TENSORS, UINT64_MAX), NPUMEM_RESOURCE_EXHAUSTED);
	limits_give_back(&table, user, LIMITS_TENSORS, 7);
	ck_assert_int_eq(ask(user, LIMITS_TENSORS, 10), 0);
	limits_drop(&table, user);
	ck_assert_uint_eq(table.n_uids, 0);
}

TEST(limits_of_ones_own)
{
	table.ordinary.most[LIMITS_DEVICE_BYTES] = 1000;
	ck_assert_int_eq(limits_set_own(&table, 1001, LIMITS_DEVICE_BYTES, 5), 0);
	struct limits_user *one = limits_take(&table, 1001);
	struct limits_user *other = limits_take(&table, 1002);
	ck_assert_int_eq(ask(one, LIMITS_DEVICE_BYTES, 6), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_int_eq(ask(one, LIMITS_DEVICE_BYTES, 5), 0);
	ck_assert_int_eq(ask(other, LIMITS_DEVICE_BYTES, 6), 0);
	limits_drop(&table, one);
	limits_drop(&table, other);
	one = limits_take(&table, 1001);
	ck_assert_int_eq(ask(one, LIMITS_DEVICE_BYTES, 6), NPUMEM_RESOURCE_EXHAUSTED);
	limits_drop(&table, one);
}

static uint64_t take_all(struct limits_user *user, enum limits_key key)
{
	uint64_t n = 0;
	for (; !ask(user, key, 1); n++)
		limits_charge(&table, user, key, 1);
	return n;
}

TEST(limits_leave_sessions_for_newcomers)
{
	/* Half of what was left, rounded up, while an eighth of all is; then one each, to the last. */
	static const uint64_t shares[] = {50, 25, 13, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
	enum { N = sizeof(shares) / sizeof(shares[0]) };
	struct limits_user *users[N], *late;
	table.all[LIMITS_SESSIONS] = 100;
	for (unsigned i = 0; i < N; i++) {
		users[i] = limits_take(&table, 1001 + i);
		ck_assert_uint_eq(take_all(users[i], LIMITS_SESSIONS), shares[i]);
	}
	late = limits_take(&table, 2000);
	ck_assert_int_eq(ask(late, LIMITS_SESSIONS, 1), NPUMEM_RESOURCE_EXHAUSTED);
	struct limits_user *root = limits_take(&table, 0), *own = limits_take(&table, 500);
	ck_assert_int_eq(ask(root, LIMITS_SESSIONS, 1), 0);
	ck_assert_int_eq(ask(own, LIMITS_SESSIONS, 1), 0);
	for (unsigned i = 0; i < N; i++) {
		limits_give_back(&table, users[i], LIMITS_SESSIONS, users[i]->now[LIMITS_SESSIONS]);
		limits_drop(&table, users[i]);
	}
	limits_drop(&table, late);
	limits_drop(&table, root);
	limits_drop(&table, own);
	ck_assert_uint_eq(table.now[LIMITS_SESSIONS], 0);
}

/* As many as an eighth of all comes to in 1024ths. */
TEST(limits_leave_bytes_for_newcomers)
{
	struct limits_user *hogs[10], *late;
	unsigned n = 0;
	table.all[LIMITS_REQUEST_BYTES] = 1 << 20;
	table.ordinary.most[LIMITS_REQUEST_BYTES] = UINT64_MAX;
	for (; n < 10; n++) {
		uint64_t most;
		hogs[n] = limits_take(&table, 1001 + n);
		most = limits_most(&table, hogs[n], LIMITS_REQUEST_BYTES);
		limits_charge(&table, hogs[n], LIMITS_REQUEST_BYTES, most);
		ck_assert_uint_eq(most, n < 3 ? 1u << (19 - n) : 1024);
	}
	late = limits_take(&table, 2000);
	ck_assert_int_eq(ask(late, LIMITS_REQUEST_BYTES, 1024), 0);
	ck_assert_int_eq(ask(late, LIMITS_REQUEST_BYTES, 1025), NPUMEM_RESOURCE_EXHAUSTED);
	while (n-- > 0) {
		limits_give_back(&table, hogs[n], LIMITS_REQUEST_BYTES, hogs[n]->now[LIMITS_REQUEST_BYTES]);
		limits_drop(&table, hogs[n]);
	}
	limits_drop(&table, late);
}

static uint32_t account(const void *accounts, uint32_t uid)
{
	return uid >= *(const uint32_t *)accounts ? 1001 : uid;
}

TEST(limits_of_an_account)
{
	static const uint32_t first = 100000;
	table.account = account;
	table.accounts = &first;
	ck_assert_int_eq(limits_set_own(&table, 100007, LIMITS_TENSORS, 5), 0);
	struct limits_user *owner = limits_take(&table, 1001);
	struct limits_user *other = limits_take(&table, 1002);
	ck_assert_ptr_eq(limits_take(&table, 100000), owner);
	ck_assert_ptr_eq(limits_take(&table, 165535), owner);
	ck_assert_ptr_ne(other, owner);
	ck_assert_uint_eq(table.n_uids, 2);
	limits_charge(&table, owner, LIMITS_TENSORS, 4);
	ck_assert_int_eq(ask(owner, LIMITS_TENSORS, 2), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_ptr_eq(limits_hold(owner), owner);
	limits_give_back(&table, owner, LIMITS_TENSORS, 4);
	for (unsigned i = 0; i < 4; i++)
		limits_drop(&table, owner);
	limits_drop(&table, other);
	ck_assert_uint_eq(table.n_uids, 0);
}

/* Of what each of them costs everybody, nobody takes all. The admins have what one user may have, in any case. */
TEST(limits_of_all)
{
	struct limits_user *user = limits_take(&table, 1001), *root = limits_take(&table, 0);
	table.all[LIMITS_FOLLOWERS] = 10;
	ck_assert_int_eq(ask(user, LIMITS_FOLLOWERS, 5), 0);
	ck_assert_int_eq(ask(user, LIMITS_FOLLOWERS, 6), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_str_eq(error.message, "uid 1001 has 0 followers, and 6 more would pass its limit of 5");
	limits_charge(&table, user, LIMITS_FOLLOWERS, 3);
	ck_assert_int_eq(ask(root, LIMITS_FOLLOWERS, 8), 0);
	table.ordinary.most[LIMITS_FOLLOWERS] = 6;
	ck_assert_int_eq(ask(root, LIMITS_FOLLOWERS, 7), NPUMEM_RESOURCE_EXHAUSTED);
	limits_give_back(&table, user, LIMITS_FOLLOWERS, 3);
	limits_drop(&table, user);
	limits_drop(&table, root);
}

/* Whoever comes late finds a part of what is shared, and what is not shared is the first come's. */
TEST(limits_share_what_has_a_total)
{
	struct limits_user *one = limits_take(&table, 1001), *other = limits_take(&table, 1002);
	ck_assert_int_eq(ask(one, LIMITS_DEVICE_BYTES, UINT64_C(1) << 40), 0);
	table.all[LIMITS_DEVICE_BYTES] = 1000;
	ck_assert_int_eq(ask(one, LIMITS_DEVICE_BYTES, 501), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_int_eq(npumem_error_find(&error, "most", -1), 500);
	ck_assert_int_eq(ask(one, LIMITS_DEVICE_BYTES, 500), 0);
	limits_charge(&table, one, LIMITS_DEVICE_BYTES, 500);
	ck_assert_int_eq(ask(other, LIMITS_DEVICE_BYTES, 251), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_int_eq(ask(other, LIMITS_DEVICE_BYTES, 250), 0);
	/* A limit that is less still holds. */
	table.ordinary.most[LIMITS_DEVICE_BYTES] = 100;
	ck_assert_int_eq(ask(other, LIMITS_DEVICE_BYTES, 101), NPUMEM_RESOURCE_EXHAUSTED);
	/* Where the others came by more than there is, nothing is left. */
	table.all[LIMITS_DEVICE_BYTES] = 400;
	ck_assert_int_eq(ask(other, LIMITS_DEVICE_BYTES, 1), NPUMEM_RESOURCE_EXHAUSTED);
	limits_give_back(&table, one, LIMITS_DEVICE_BYTES, 500);
	limits_drop(&table, one);
	limits_drop(&table, other);
	ck_assert_uint_eq(table.now[LIMITS_DEVICE_BYTES], 0);
}

/* One that was lowered below what the uid has. */
TEST(limits_that_are_passed_already)
{
	struct limits_user *user = limits_take(&table, 1001);
	limits_charge(&table, user, LIMITS_TENSORS, 7);
	ck_assert_int_eq(limits_set_own(&table, 1001, LIMITS_TENSORS, 5), 0);
	ck_assert_int_eq(ask(user, LIMITS_TENSORS, 1), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_int_eq(ask(user, LIMITS_TENSORS, 0), NPUMEM_RESOURCE_EXHAUSTED);
	limits_give_back(&table, user, LIMITS_TENSORS, 7);
	limits_drop(&table, user);
}

/* Whoever comes and goes is counted as idle once, and whoever has limits of its own is never forgotten. */
TEST(limits_of_who_comes_and_goes)
{
	ck_assert_int_eq(limits_set_own(&table, 7, LIMITS_TENSORS, 5), 0);
	for (unsigned i = 0; i < 3; i++) {
		limits_drop(&table, limits_take(&table, 7));
		ck_assert_uint_eq(table.n_idle, 0);
	}
	for (unsigned i = 0; i < 3; i++) {
		struct limits_user *user = limits_take(&table, 1001);
		ck_assert_uint_eq(table.n_idle, 0);
		ck_assert_uint_eq(table.n_uids, 1);
		limits_drop(&table, user);
		ck_assert_uint_eq(table.n_idle, 1);
		ck_assert_uint_eq(table.n_uids, 0);
	}
	for (uint32_t i = 0; i < LIMITS_IDLE_MAX + 10; i++)
		limits_drop(&table, limits_take(&table, 2000 + i));
	ck_assert_uint_eq(table.n_idle, LIMITS_IDLE_MAX);
	struct limits_user *own = limits_take(&table, 7);
	ck_assert_int_eq(ask(own, LIMITS_TENSORS, 6), NPUMEM_RESOURCE_EXHAUSTED);
	limits_drop(&table, own);
}

/* Who has come back is not idle, however many are. */
TEST(limits_of_who_came_back)
{
	struct limits_user *user = limits_take(&table, 1001), *found = NULL;
	limits_drop(&table, user);
	ck_assert_ptr_eq(limits_take(&table, 1001), user);
	for (uint32_t i = 0; i < LIMITS_IDLE_MAX + 10; i++)
		limits_drop(&table, limits_take(&table, 2000 + i));
	for (struct limits_user *at = table.users; at; at = at->next)
		found = at == user ? at : found;
	ck_assert_ptr_eq(found, user);
	limits_drop(&table, user);
}

TEST(limits_names)
{
	for (int key = 0; key < LIMITS_N; key++)
		ck_assert_int_eq(limits_parse_key(limits_name((enum limits_key)key)), key);
	ck_assert_int_eq(limits_parse_key(""), -1);
	ck_assert_int_eq(limits_parse_key("session"), -1);
}

FIXTURE(begin, end)
