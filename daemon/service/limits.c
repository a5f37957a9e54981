/* A list of users: there are few, and a session looks its user up once. */
#include "daemon/service/limits.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <utlist.h>

static const struct {
	const char *name;
	bool of_bytes;
	uint64_t ordinary, all;
} rows[LIMITS_N] = {
#define LIMIT(KEY, name, of_bytes, ordinary, all) {#name, of_bytes, ordinary, all},
#include "daemon/service/limits.def"
#undef LIMIT
};

int limits_parse_key(const char *name)
{
	for (int key = 0; key < LIMITS_N; key++)
		if (strcmp(rows[key].name, name) == 0)
			return key;
	return -1;
}

const char *limits_name(enum limits_key key)
{
	return rows[key].name;
}

bool limits_is_of_bytes(enum limits_key key)
{
	return rows[key].of_bytes;
}

/* The amount as it is in messages. */
static const char *amount_text(enum limits_key key, uint64_t amount, char text[NPUMEM_BYTES_TEXT_BYTES])
{
	if (limits_is_of_bytes(key))
		return npumem_bytes_text(amount, text);
	snprintf(text, NPUMEM_BYTES_TEXT_BYTES, "%" PRIu64, amount);
	return text;
}

void limits_init(struct limits_table *table, const struct heap *heap, const struct npumem_geometry *geometry,
		 uint32_t admin)
{
	*table = (struct limits_table){.heap = heap, .geometry = geometry, .admin = admin, .stop_percent = 5};
	for (int key = 0; key < LIMITS_N; key++) {
		table->ordinary.most[key] = rows[key].ordinary;
		table->all[key] = rows[key].all;
	}
}

static void free_user(struct limits_table *table, struct limits_user *user)
{
	fair_user_deinit(&user->loop);
	fair_user_deinit(&user->search);
	totals_deinit(&user->totals, table->heap);
	heap_free(table->heap, user);
}

void limits_deinit(struct limits_table *table)
{
	struct limits_user *user, *next;

	LL_FOREACH_SAFE(table->users, user, next)
	{
		assert(!user->n_refs);
		free_user(table, user);
	}
	table->users = NULL;
}

static struct limits_user *find_or_add(struct limits_table *table, uint32_t uid)
{
	struct limits_user *user;

	uid = table->account ? table->account(table->accounts, uid) : uid;
	LL_SEARCH_SCALAR(table->users, user, uid, uid);
	if (user)
		return user;
	user = heap_zalloc(table->heap, 1, sizeof(*user));
	if (!user)
		return NULL;
	if (totals_init(&user->totals, table->heap, table->geometry)) {
		heap_free(table->heap, user);
		return NULL;
	}
	user->uid = uid;
	user->order.loop = &user->loop;
	LL_PREPEND(table->users, user);
	return user;
}

int limits_set_own(struct limits_table *table, uint32_t uid, enum limits_key key, uint64_t most)
{
	struct limits_user *user = find_or_add(table, uid);

	if (!user)
		return -ENOMEM;
	if (!user->has_own)
		user->own = table->ordinary;
	user->has_own = true;
	user->own.most[key] = most;
	return 0;
}

struct limits_user *limits_take(struct limits_table *table, uint32_t uid)
{
	struct limits_user *user = find_or_add(table, uid);

	if (!user || user->n_refs++)
		return user;
	table->n_uids++;
	table->n_idle -= user->is_idle;
	user->is_idle = false;
	LL_DELETE(table->users, user);
	LL_PREPEND(table->users, user);
	return user;
}

static void forget_oldest(struct limits_table *table)
{
	struct limits_user *oldest = NULL;

	for (struct limits_user *user = table->users; user; user = user->next)
		oldest = user->is_idle ? user : oldest;
	LL_DELETE(table->users, oldest);
	free_user(table, oldest);
	table->n_idle--;
}

void limits_drop(struct limits_table *table, struct limits_user *user)
{
	assert(user->n_refs);
	if (--user->n_refs)
		return;
	table->n_uids--;
	if (user->has_own)
		return;
	for (int key = 0; key < LIMITS_N; key++)
		assert(!user->now[key]);
	user->is_idle = true;
	if (++table->n_idle > LIMITS_IDLE_MAX)
		forget_oldest(table);
}

static bool is_admin(const struct limits_table *table, const struct limits_user *user)
{
	return !user->uid || user->uid == table->admin;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Halves alone would leave nothing after some users: of 1000 sessions, 10 users have all. */
static uint64_t share_of_all(const struct limits_table *table, const struct limits_user *user, enum limits_key key)
{
	enum { RESERVED_PARTS = 8, LEAST_PARTS = 1024 };
	uint64_t all = table->all[key], others = table->now[key] - user->now[key];
	uint64_t left = others < all ? all - others : 0, reserved = all / RESERVED_PARTS;
	uint64_t half = smaller((left + 1) / 2, left > reserved ? left - reserved : 0);

	/* So that others who use up all of a thing do not keep them from administering, root and the daemon's uid
	 * have no share: their own limit bounds them. */
	if (!all || is_admin(table, user))
		return UINT64_MAX;
	return smaller(left, larger(half, larger(all / LEAST_PARTS, 1)));
}

uint64_t limits_most(const struct limits_table *table, const struct limits_user *user, enum limits_key key)
{
	uint64_t most = user->has_own ? user->own.most[key] : table->ordinary.most[key];
	uint64_t share = share_of_all(table, user, key);

	return share < most ? share : most;
}

int limits_check(const struct limits_table *table, const struct limits_user *user, enum limits_key key,
		 uint64_t more, struct npumem_error *error)
{
	uint64_t most = limits_most(table, user, key), now = user->now[key];
	char texts[3][NPUMEM_BYTES_TEXT_BYTES];

	if (now <= most && more <= most - now)
		return 0;
	npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
			 "uid %" PRIu32 " has %s %s, and %s more would pass its limit of %s", user->uid,
			 amount_text(key, now, texts[0]), rows[key].name, amount_text(key, more, texts[1]),
			 amount_text(key, most, texts[2]));
	npumem_error_text(error, "limit", rows[key].name);
	npumem_error_number(error, "now", (int64_t)(now & INT64_MAX));
	npumem_error_number(error, "more", (int64_t)(more & INT64_MAX));
	npumem_error_number(error, "most", (int64_t)(most & INT64_MAX));
	return NPUMEM_RESOURCE_EXHAUSTED;
}

void limits_charge(struct limits_table *table, struct limits_user *user, enum limits_key key, uint64_t n)
{
	user->now[key] += n;
	table->now[key] += n;
}

void limits_give_back(struct limits_table *table, struct limits_user *user, enum limits_key key, uint64_t n)
{
	assert(user->now[key] >= n);
	user->now[key] -= n;
	table->now[key] -= n;
}
