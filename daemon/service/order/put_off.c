#include "daemon/service/order/put_off.h"

#include <utlist.h>

#include "daemon/service/order/conflicts.h"

enum { ACCESS_COSTS = 64 }; /* in comparisons, as its root may meet hundreds */

void put_off_add(struct put_off *put_off, struct scheduler_access *access)
{
	struct scheduler_user *user = access->entry->user;

	access->is_put_off = true;
	DL_APPEND2(user->put_off, access, prev_put_off, next_put_off);
	fair_queue_add(put_off->queue, user->loop, &user->work);
}

void put_off_remove(struct put_off *put_off, struct scheduler_access *access)
{
	struct scheduler_user *user = access->entry->user;

	if (!access->is_put_off)
		return;
	access->is_put_off = false;
	DL_DELETE2(user->put_off, access, prev_put_off, next_put_off);
	if (!user->put_off)
		fair_queue_remove(&user->work);
	if (user->compared != access)
		return;
	user->compared = NULL;
	DL_DELETE2(put_off->comparing, user, prev_comparing, next_comparing);
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

static void begin(struct put_off *put_off, struct scheduler_user *user)
{
	user->compared = user->put_off;
	user->compared_at = user->compared->prev;
	DL_APPEND2(put_off->comparing, user, prev_comparing, next_comparing);
}

struct scheduler_access *put_off_next(struct put_off *put_off, struct scheduler_user *user, unsigned *most)
{
	while (*most && user->put_off) {
		struct scheduler_access *access;
		enum conflicts_found found;

		if (!user->compared)
			begin(put_off, user);
		access = user->compared;
		found = conflicts_find(access, &user->compared_at, most);
		if (found == CONFLICTS_UNKNOWN) {
			stop_at(user, user->compared_at);
			break;
		}
		put_off_remove(put_off, access);
		*most -= *most < ACCESS_COSTS ? *most : ACCESS_COSTS;
		if (found == CONFLICTS_NONE)
			return access;
	}
	return NULL;
}
