/* A list in the order sent. Each waiting entry counts the earlier ones it conflicts with; when an entry goes, the later
 * ones that counted it count one less, and start at 0. Comparing costs O(1) for tensors whose offsets do not
 * meet, so the whole is linear in what is in flight, which the limits bound. */
#include "daemon/service/order.h"

#include <assert.h>

#include "daemon/device/meet.h"

void order_init(struct order *order, const struct npumem_geometry *geometry)
{
	*order = (struct order){.geometry = geometry};
}

void order_deinit(struct order *order)
{
	assert(!order->first);
	(void)order;
}

static bool accesses_meet(const struct npumem_geometry *geometry, const struct order_access *a,
			  const struct order_access *b)
{
	struct meet_range range;
	return (a->writes || b->writes) && meet_first(geometry, &a->place, a->kinds, &b->place, b->kinds, &range);
}

static bool meets_any(const struct order *order, const struct order_entry *entry,
		      const struct order_access *accesses, unsigned n_accesses)
{
	for (unsigned i = 0; i < entry->n_accesses; i++)
		for (unsigned j = 0; j < n_accesses; j++)
			if (accesses_meet(order->geometry, &entry->accesses[i], &accesses[j]))
				return true;
	return false;
}

static bool conflict(const struct order *order, const struct order_entry *a, const struct order_entry *b)
{
	return a->barrier || b->barrier || meets_any(order, a, b->accesses, b->n_accesses);
}

bool order_is_free(const struct order *order, const struct order_access *accesses, unsigned n_accesses)
{
	for (const struct order_entry *entry = order->first; entry; entry = entry->next)
		if (entry->barrier || meets_any(order, entry, accesses, n_accesses))
			return false;
	return true;
}

static void start(struct order_entry *entry)
{
	entry->started = true;
	entry->start(entry);
}

void order_add(struct order *order, struct order_entry *entry)
{
	entry->started = false;
	entry->n_before = 0;
	for (const struct order_entry *earlier = order->first; earlier; earlier = earlier->next)
		entry->n_before += conflict(order, earlier, entry);
	entry->next = NULL;
	entry->prev = order->last;
	if (order->last)
		order->last->next = entry;
	else
		order->first = entry;
	order->last = entry;
	order->n++;
	if (!entry->n_before)
		start(entry);
}

/* After a barrier: tensors may lie elsewhere now, so everything is compared again. What waited for the barrier has
 * not started, and what had started before it is finished, so no running entry changes. */
static void compare_again(struct order *order)
{
	for (struct order_entry *entry = order->first; entry; entry = entry->next) {
		if (entry->started)
			continue;
		if (entry->refresh)
			entry->refresh(entry);
		entry->n_before = 0;
		for (const struct order_entry *earlier = order->first; earlier != entry; earlier = earlier->next)
			entry->n_before += conflict(order, earlier, entry);
	}
}

/* Starts what may start. A start can finish its entry at once and so change the list: then from the front again. Such
 * a finish comes back here and leaves the rest to the loop that is running, so that a long queue of short operations
 * does not become a deep stack. */
static void start_ready(struct order *order)
{
	struct order_entry *entry = order->first;
	if (order->starting)
		return;
	order->starting = true;
	while (entry) {
		if (entry->started || entry->n_before) {
			entry = entry->next;
			continue;
		}
		start(entry);
		entry = order->first;
	}
	order->starting = false;
}

void order_finish(struct order *order, struct order_entry *entry)
{
	bool moved = entry->barrier && entry->started;
	if (!moved)
		for (struct order_entry *later = entry->next; later; later = later->next)
			later->n_before -= !later->started && conflict(order, entry, later);
	if (entry->prev)
		entry->prev->next = entry->next;
	else
		order->first = entry->next;
	if (entry->next)
		entry->next->prev = entry->prev;
	else
		order->last = entry->prev;
	order->n--;
	if (moved)
		compare_again(order);
	start_ready(order);
}

unsigned order_accesses(const struct op *op, struct order_access *accesses)
{
	struct op_access touched[OP_ACCESSES_MAX];
	unsigned n = op_accesses(op, touched);
	for (unsigned i = 0; i < n; i++)
		accesses[i] = (struct order_access){touched[i].tensor->place, touched[i].kinds, touched[i].writes};
	return n;
}

void order_access_whole(const struct tensor *tensor, struct order_access *access)
{
	*access = (struct order_access){tensor->place, MEET_FOOTPRINT, true};
}
