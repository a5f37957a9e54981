/* A queue for each uid, and a queue of the uids that have one. Nobody is tried twice in a round: it begins when
 * something was freed or moved, but not before all have been tried in the one before whose turn it was.
 * Invariant: without `look` and `room` there is nobody to be tried. Does not know what it takes to serve a waiter.
 */
#include "daemon/service/waiting.h"

#include <utlist.h>

#include "daemon/device/placement/fits_empty.h"
#include "daemon/service/service.h"

void waiting_init(struct waiting *waiting, struct limits_table *limits)
{
	*waiting = (struct waiting){.limits = limits, .deadline_ns = WAITING_NEVER, .round = 1};
}

/* ---- the queues ---- */

int waiting_add(struct waiting *waiting, struct waiter *waiter, struct npumem_error *error)
{
	struct limits_user *user = waiter->user;
	int status = limits_check(waiting->limits, user, LIMITS_WAITING, 1, error);

	if (status)
		return status;
	limits_charge(waiting->limits, user, LIMITS_WAITING, 1);
	if (waiter->deadline_ns < waiting->deadline_ns)
		waiting->deadline_ns = waiter->deadline_ns;
	/* Nothing was kept from it where nobody was in line. */
	waiter->tried = waiting->n++ ? 0 : waiting->round;
	if (!user->waiters)
		DL_APPEND2(waiting->first, user, prev_turn, next_turn);
	DL_APPEND(user->waiters, waiter);
	waiting->look = true;
	return 0;
}

void waiting_remove(struct waiting *waiting, struct waiter *waiter)
{
	struct limits_user *user = waiter->user;

	DL_DELETE(user->waiters, waiter);
	if (!user->waiters)
		DL_DELETE2(waiting->first, user, prev_turn, next_turn);
	limits_give_back(waiting->limits, user, LIMITS_WAITING, 1);
	waiting->look = true;
	/* Else what was the earliest stays: an alarm for nothing costs less than to look for it each time. */
	if (!--waiting->n)
		waiting->deadline_ns = WAITING_NEVER;
}

void waiting_served(struct waiting *waiting, struct waiter *waiter)
{
	struct limits_user *user = waiter->user;

	waiting_remove(waiting, waiter);
	if (!user->waiters)
		return;
	DL_DELETE2(waiting->first, user, prev_turn, next_turn);
	DL_APPEND2(waiting->first, user, prev_turn, next_turn);
}

static struct waiter *first(const struct waiting *waiting)
{
	return waiting->first ? waiting->first->waiters : NULL;
}

static struct waiter *after(const struct waiter *waiter)
{
	if (waiter->next)
		return waiter->next;
	return waiter->user->next_turn ? waiter->user->next_turn->waiters : NULL;
}

/* ---- whose turn it is ---- */

static uint64_t share(const struct service *service)
{
	const struct npumem_geometry *geometry = &device_options(service->device)->geometry;

	return (uint64_t)(geometry->npu_bytes * geometry->n_npus) / service->limits.n_uids;
}

static uint64_t window(const struct service *service)
{
	return service->events.now_ns ? service->events.now_ns() / WAITING_WINDOW_NS : 0;
}

/* Above it one yields. Large requests have every other window for themselves, so that they are not starved; the
 * others the rest, so that nobody is kept out for longer than one. */
static uint64_t bound(const struct service *service)
{
	return window(service) % 2 ? share(service) : UINT64_MAX;
}

static bool exceeds(const struct waiter *waiter, uint64_t bytes)
{
	return waiter->bytes > bytes || waiter->user->now[LIMITS_DEVICE_BYTES] > bytes - waiter->bytes;
}

const struct waiter *waiting_claimant(const struct service *service)
{
	const struct waiter *waiter = first(&service->waiting);
	uint64_t most = waiter ? bound(service) : 0;

	while (waiter && exceeds(waiter, most))
		waiter = after(waiter);
	return waiter;
}

/* The first that was not tried in this round, of those that nobody holds up. */
static struct waiter *untried(const struct service *service)
{
	struct waiter *waiter = first(&service->waiting);
	uint64_t most = waiter ? bound(service) : 0;

	while (waiter && waiter->tried == service->waiting.round)
		waiter = exceeds(waiter, most) ? after(waiter) : NULL;
	return waiter;
}

struct waiter *waiting_next(struct service *service)
{
	struct waiting *waiting = &service->waiting;
	struct waiter *waiter = waiting->look || waiting->room ? untried(service) : NULL;

	/* Where something is freed all the time the last are tried, too. */
	if (!waiter && waiting->room) {
		waiting->room = false;
		waiting->round++;
		waiter = untried(service);
	}
	waiting->look = waiter != NULL;
	if (waiter)
		waiter->tried = waiting->round;
	return waiter;
}

uint64_t waiting_window_end(const struct service *service)
{
	if (service->waiting.n < 2 || !service->events.now_ns ||
	    !exceeds(first(&service->waiting), share(service)))
		return WAITING_NEVER;
	return (window(service) + 1) * WAITING_WINDOW_NS;
}

/* ---- times ---- */

struct waiter *waiting_expired(struct waiting *waiting, uint64_t now_ns)
{
	uint64_t earliest = WAITING_NEVER;

	if (now_ns < waiting->deadline_ns)
		return NULL;
	for (struct waiter *waiter = first(waiting); waiter; waiter = after(waiter)) {
		if (waiter->deadline_ns <= now_ns)
			return waiter;
		if (waiter->deadline_ns < earliest)
			earliest = waiter->deadline_ns;
	}
	waiting->deadline_ns = earliest;
	return NULL;
}

bool waiting_measure(const struct device *device, const struct device_request *requests, unsigned n,
		     struct waiter *waiter)
{
	const struct npumem_geometry *geometry = &device_options(device)->geometry;

	if (!fits_empty_fits(device, requests, n))
		return false;
	waiter->from = geometry->npu_bytes;
	waiter->to = 0;
	waiter->bytes = 0;
	for (unsigned i = 0; i < n; i++) {
		struct npumem_place place;

		if (npumem_place_resolve(geometry, &requests[i].spec, &place, NULL))
			continue;
		/* Far from overflow: each was found to have no more than an NPU has. */
		waiter->bytes += (uint64_t)(place.bytes_per_npu * geometry->n_npus);
		if (requests[i].spec.address == NPUMEM_ANY)
			continue;
		if (place.offset < waiter->from)
			waiter->from = place.offset;
		if (place.offset + place.bytes_per_npu > waiter->to)
			waiter->to = place.offset + place.bytes_per_npu;
	}
	return true;
}
