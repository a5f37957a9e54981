/* A list of the users that have work, and a list of works for each. The least served user is searched for: users
 * are accounts, of which few have work at one time. */
#include "daemon/service/order/fair_queue.h"

#include <assert.h>
#include <utlist.h>

static void activate(struct fair_queue *queue, struct fair_user *user)
{
	bool was_empty = fair_queue_is_empty(queue);

	if (user->first)
		return;
	user->queue = queue;
	if (user->served_ns < queue->floor_ns)
		user->served_ns = queue->floor_ns;
	DL_APPEND(queue->users, user);
	if (was_empty && queue->wake)
		queue->wake(queue->ctx);
}

void fair_queue_add(struct fair_queue *queue, struct fair_user *user, struct fair_work *work)
{
	if (work->prev)
		return;
	activate(queue, user);
	work->user = user;
	DL_APPEND(user->first, work);
}

void fair_queue_add_first(struct fair_queue *queue, struct fair_user *user, struct fair_work *work)
{
	if (work->prev)
		return;
	activate(queue, user);
	work->user = user;
	DL_PREPEND(user->first, work);
}

void fair_queue_remove(struct fair_work *work)
{
	struct fair_user *user = work->user;

	if (!work->prev)
		return;
	DL_DELETE(user->first, work);
	work->next = work->prev = NULL;
	if (!user->first)
		DL_DELETE(user->queue->users, user);
}

struct fair_work *fair_queue_take_of(struct fair_queue *queue, struct fair_user *user)
{
	struct fair_work *work = user->first;

	if (queue->floor_ns < user->served_ns)
		queue->floor_ns = user->served_ns;
	queue->serving = user;
	fair_queue_remove(work);
	return work;
}

struct fair_work *fair_queue_take(struct fair_queue *queue)
{
	struct fair_user *least = queue->users;

	for (struct fair_user *user = least; user; user = user->next)
		if (user->served_ns < least->served_ns)
			least = user;
	return least ? fair_queue_take_of(queue, least) : NULL;
}

void fair_user_deinit(struct fair_user *user)
{
	assert(!user->first);
	if (user->queue && user->queue->serving == user)
		user->queue->serving = NULL;
}
