#include "daemon/service/order/put_off.h"

#include <utlist.h>

#include "daemon/service/order/conflicts.h"

void put_off_add(struct put_off *put_off, struct scheduler_access *access)
{
	struct scheduler_entry *entry = access->entry;
	struct scheduler_user *user = entry->user;

	access->is_put_off = true;
	if (entry->is_put_off)
		return;
	entry->is_put_off = true;
	DL_APPEND2(user->put_off, entry, prev_put_off, next_put_off);
	fair_queue_add(put_off->queue, user->loop, &user->work);
}

static void begin(struct put_off *put_off, struct scheduler_user *user, struct scheduler_access *access)
{
	user->compared = access;
	user->compared_at = access->prev;
	DL_APPEND2(put_off->comparing, user, prev_comparing, next_comparing);
}

void put_off_remove(struct put_off *put_off, struct scheduler_access *access)
{
	struct scheduler_user *user = access->entry->user;

	access->is_put_off = false;
	if (user->compared != access)
		return;
	user->compared = NULL;
	DL_DELETE2(put_off->comparing, user, prev_comparing, next_comparing);
}

static void remove_entry(struct scheduler_entry *entry)
{
	struct scheduler_user *user = entry->user;

	entry->is_put_off = false;
	DL_DELETE2(user->put_off, entry, prev_put_off, next_put_off);
	if (!user->put_off)
		fair_queue_remove(&user->work);
}

void put_off_forget(struct put_off *put_off, struct scheduler_entry *entry)
{
	if (!entry->is_put_off)
		return;
	if (entry->user->compared && entry->user->compared->entry == entry)
		put_off_remove(put_off, entry->user->compared);
	remove_entry(entry);
}

/* `at` NULL: it was compared with all. */
static void stop_at(struct scheduler_user *user, struct scheduler_access *at)
{
	user->compared_at = at;
	if (at)
		at->is_compared_now = true;
}

void put_off_pass(struct put_off *put_off, const struct scheduler_access *access)
{
	struct scheduler_user *user;

	if (!access->is_compared_now)
		return;
	DL_FOREACH2(put_off->comparing, user, next_comparing)
	if (user->compared_at == access)
		stop_at(user, access->prev);
}

static struct scheduler_access *first_of(const struct scheduler_entry *entry)
{
	for (size_t i = 0; i < entry->n_accesses; i++)
		if (entry->accesses[i].is_put_off)
			return &entry->accesses[i];
	return NULL;
}

/* The access to go on with; NULL: none. */
static struct scheduler_access *next(struct put_off *put_off, struct scheduler_user *user)
{
	struct scheduler_access *access = user->compared;

	while (!access && user->put_off) {
		access = first_of(user->put_off);
		if (!access)
			remove_entry(user->put_off);
	}
	if (access && !user->compared)
		begin(put_off, user, access);
	return access;
}

struct scheduler_access *put_off_next(struct put_off *put_off, struct scheduler_user *user, unsigned *most)
{
	struct scheduler_access *access;

	while (*most && (access = next(put_off, user))) {
		enum conflicts_found found = conflicts_find(access, &user->compared_at, most);

		if (found == CONFLICTS_UNKNOWN) {
			stop_at(user, user->compared_at);
			break;
		}
		put_off_remove(put_off, access);
		*most -= *most > 0;
		if (found == CONFLICTS_NONE)
			return access;
	}
	return NULL;
}
