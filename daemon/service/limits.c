/* A list of uids: there are few of them, and a session looks its own up once. */
#include "daemon/service/limits.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <utlist.h>

static const char *const names[LIMITS_N] = {
	[LIMITS_SESSIONS] = "sessions",		  [LIMITS_TENSORS] = "tensors",
	[LIMITS_DEVICE_BYTES] = "device_bytes",	  [LIMITS_REQUESTS] = "requests",
	[LIMITS_REQUEST_BYTES] = "request_bytes", [LIMITS_WAITING] = "waiting",
	[LIMITS_FOLLOWERS] = "followers",	  [LIMITS_SEGMENT_BYTES] = "segment_bytes",
	[LIMITS_DESCRIPTORS] = "descriptors",	  [LIMITS_SCRATCH_BYTES] = "scratch_bytes",
};

int limits_parse_key(const char *name)
{
	for (int key = 0; key < LIMITS_N; key++)
		if (strcmp(names[key], name) == 0)
			return key;
	return -1;
}

const char *limits_name(enum limits_key key)
{
	return names[key];
}

bool limits_is_of_bytes(enum limits_key key)
{
	return key == LIMITS_DEVICE_BYTES || key == LIMITS_REQUEST_BYTES || key == LIMITS_SEGMENT_BYTES ||
	       key == LIMITS_SCRATCH_BYTES;
}

/* As a message has it. */
static const char *amount_text(enum limits_key key, uint64_t amount, char text[NPUMEM_BYTES_TEXT_BYTES])
{
	if (limits_is_of_bytes(key))
		return npumem_bytes_text(amount, text);
	snprintf(text, NPUMEM_BYTES_TEXT_BYTES, "%" PRIu64, amount);
	return text;
}

void limits_init(struct limits_table *table, const struct heap *heap, uint32_t admin)
{
	/* Each request may look through the line, and each event through the followers, which have 100 KiB each.
	 */
	*table = (struct limits_table){
		.heap = heap,
		.admin = admin,
		.all = {[LIMITS_WAITING] = 1024, [LIMITS_FOLLOWERS] = 64, [LIMITS_DESCRIPTORS] = 32}};
	/* The device is the first come's unless the daemon is told otherwise; the daemon's own memory is not. */
	table->ordinary = (struct limits){.most = {
						  [LIMITS_SESSIONS] = 256,
						  [LIMITS_TENSORS] = 1 << 20,
						  [LIMITS_DEVICE_BYTES] = UINT64_MAX,
						  [LIMITS_REQUESTS] = 4096,
						  [LIMITS_REQUEST_BYTES] = (uint64_t)256 << 20,
						  [LIMITS_WAITING] = 256,
						  [LIMITS_FOLLOWERS] = 16,
						  [LIMITS_SEGMENT_BYTES] = (uint64_t)8 << 30,
						  [LIMITS_DESCRIPTORS] = 16,
						  [LIMITS_SCRATCH_BYTES] = (uint64_t)1 << 30,
					  }};
	table->all[LIMITS_REQUEST_BYTES] = (uint64_t)1 << 30;
	table->all[LIMITS_SEGMENT_BYTES] = (uint64_t)64 << 30;
}

void limits_deinit(struct limits_table *table)
{
	struct limits_user *user, *next;

	LL_FOREACH_SAFE(table->users, user, next)
	{
		assert(!user->n_refs);
		heap_free(table->heap, user);
	}
	table->users = NULL;
}

static struct limits_user *find_or_add(struct limits_table *table, uint32_t uid)
{
	struct limits_user *user;

	LL_SEARCH_SCALAR(table->users, user, uid, uid);
	if (user)
		return user;
	user = heap_zalloc(table->heap, 1, sizeof(*user));
	if (!user)
		return NULL;
	user->uid = uid;
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
	heap_free(table->heap, oldest);
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

static uint64_t share_of_all(const struct limits_table *table, const struct limits_user *user, enum limits_key key)
{
	uint64_t others = table->now[key] - user->now[key];
	uint64_t left = others < table->all[key] ? table->all[key] - others : 0;

	if (!table->all[key])
		return UINT64_MAX;
	if (user->uid && user->uid != table->admin)
		return (left + 1) / 2;
	/* There are fds apart for whoever looks after the daemon. */
	return key == LIMITS_SESSIONS ? UINT64_MAX : left;
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
			 amount_text(key, now, texts[0]), names[key], amount_text(key, more, texts[1]),
			 amount_text(key, most, texts[2]));
	npumem_error_text(error, "limit", names[key]);
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
