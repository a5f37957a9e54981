/* The line is kept sorted by turn, then by arrival. A newcomer's turn is one after the last that was served or is
 * waited for by its uid, and never before the head's: so each uid has one request in each turn.
 * Does not know what it takes to serve a waiter. */
#include "daemon/service/waiting.h"

#include "daemon/device/trial.h"

static uint64_t turn_of(const struct waiting *waiting, uint32_t uid)
{
	uint64_t turn = waiting->turn + 1;

	if (waiting->first && waiting->first->turn > turn)
		turn = waiting->first->turn;
	for (const struct waiter *other = waiting->first; other; other = other->next)
		if (other->uid == uid && other->turn >= turn)
			turn = other->turn + 1;
	return turn;
}

int waiting_add(struct waiting *waiting, struct waiter *waiter, struct npumem_error *error)
{
	struct waiter *before = waiting->last;
	unsigned n = 0;

	for (const struct waiter *other = waiting->first; other; other = other->next)
		n += other->owner == waiter->owner;
	if (n >= WAITING_OF_ONE_MAX)
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
					"%u allocations of this session wait for room, which is the most", n);
	waiter->turn = turn_of(waiting, waiter->uid);
	while (before && before->turn > waiter->turn)
		before = before->prev;
	waiter->prev = before;
	waiter->next = before ? before->next : waiting->first;
	if (waiter->next)
		waiter->next->prev = waiter;
	else
		waiting->last = waiter;
	if (before)
		before->next = waiter;
	else
		waiting->first = waiter;
	waiting->n++;
	return 0;
}

void waiting_remove(struct waiting *waiting, struct waiter *waiter)
{
	if (waiter->prev)
		waiter->prev->next = waiter->next;
	else
		waiting->first = waiter->next;
	if (waiter->next)
		waiter->next->prev = waiter->prev;
	else
		waiting->last = waiter->prev;
	waiting->room |= !waiter->prev;
	waiting->n--;
}

void waiting_served(struct waiting *waiting, struct waiter *waiter)
{
	waiting->turn = waiter->turn;
	waiting_remove(waiting, waiter);
}

struct waiter *waiting_expired(const struct waiting *waiting, uint64_t now_ns)
{
	struct waiter *waiter = waiting->first;

	while (waiter && waiter->deadline_ns > now_ns)
		waiter = waiter->next;
	return waiter;
}

uint64_t waiting_deadline(const struct waiting *waiting)
{
	uint64_t deadline = WAITING_NEVER;

	for (const struct waiter *waiter = waiting->first; waiter; waiter = waiter->next)
		if (waiter->deadline_ns < deadline)
			deadline = waiter->deadline_ns;
	return deadline;
}

bool waiting_measure(const struct device *device, const struct device_request *requests, unsigned n,
		     struct waiter *waiter)
{
	const struct npumem_geometry *geometry = &device_options(device)->geometry;

	if (!trial_fits(device, requests, n))
		return false;
	waiter->from = geometry->npu_bytes;
	waiter->to = 0;
	for (unsigned i = 0; i < n; i++) {
		struct npumem_place place;

		if (requests[i].spec.address == NPUMEM_ANY ||
		    npumem_place_resolve(geometry, &requests[i].spec, &place, NULL))
			continue;
		if (place.offset < waiter->from)
			waiter->from = place.offset;
		if (place.offset + place.bytes_per_npu > waiter->to)
			waiter->to = place.offset + place.bytes_per_npu;
	}
	return true;
}
