/* The line is kept sorted by turn, then by arrival. A newcomer's turn is one after the last that was served or is
 * waited for by its uid, and never before the head's: so each uid has one request in each turn.
 * Invariant: what is before `at` was tried since there was room last, so that whoever leaves, the line goes on
 * where it stood. Does not know what it takes to serve a waiter. */
#include "daemon/service/waiting.h"

#include "daemon/device/placement/fits_empty.h"
#include "daemon/service/service.h"

void waiting_init(struct waiting *waiting, struct limits_table *limits)
{
	*waiting = (struct waiting){.limits = limits, .deadline_ns = WAITING_NEVER};
}

static uint64_t turn_of(const struct waiting *waiting, const struct limits_user *user)
{
	const struct waiter *other = waiting->last;
	uint64_t turn = waiting->turn + 1;

	if (waiting->first && waiting->first->turn > turn)
		turn = waiting->first->turn;
	while (other && other->user != user)
		other = other->prev;
	return other && other->turn >= turn ? other->turn + 1 : turn;
}

static void set_at(struct waiting *waiting, struct waiter *waiter)
{
	waiting->at = waiter;
	waiting->stuck = false;
}

int waiting_add(struct waiting *waiting, struct waiter *waiter, struct npumem_error *error)
{
	struct waiter *before = waiting->last;
	int status = limits_check(waiting->limits, waiter->user, LIMITS_WAITING, 1, error);

	if (status)
		return status;
	limits_charge(waiting->limits, waiter->user, LIMITS_WAITING, 1);
	if (waiter->deadline_ns < waiting->deadline_ns)
		waiting->deadline_ns = waiter->deadline_ns;
	waiter->turn = turn_of(waiting, waiter->user);
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
	/* It may come before the claimant; or nobody keeps anything from it. */
	waiting->room |= waiter->next != NULL;
	if (!waiting->at) {
		waiting->n_passed = 0;
		set_at(waiting, waiter);
	}
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
	if (waiting->at == waiter)
		set_at(waiting, waiter->next);
	limits_give_back(waiting->limits, waiter->user, LIMITS_WAITING, 1);
	/* Else what was the earliest stays: an alarm for nothing costs less than to look for it each time. */
	if (!--waiting->n)
		waiting->deadline_ns = WAITING_NEVER;
}

void waiting_served(struct waiting *waiting, struct waiter *waiter)
{
	if (waiter->turn > waiting->turn)
		waiting->turn = waiter->turn;
	waiting_remove(waiting, waiter);
}

/* ---- whose turn it is ---- */

static uint64_t window_of(const struct service *service)
{
	return service->events.now_ns ? service->events.now_ns() / WAITING_WINDOW_NS : 0;
}

static bool passes_share(const struct service *service, const struct waiter *waiter)
{
	const struct npumem_geometry *geometry = &device_options(service->device)->geometry;
	uint64_t share = (uint64_t)(geometry->npu_bytes * geometry->n_npus) / service->limits.n_uids;
	uint64_t has = waiter->user->now[LIMITS_DEVICE_BYTES];

	return waiter->bytes > share || has > share - waiter->bytes;
}

/* Large requests have every other window for themselves, so that they are not starved; the others the rest, so
 * that nobody is kept out for longer than one. */
static bool yields(const struct service *service, const struct waiter *waiter, uint64_t window)
{
	return window % 2 && passes_share(service, waiter);
}

struct waiter *waiting_next(struct service *service)
{
	struct waiting *waiting = &service->waiting;
	uint64_t window = window_of(service);

	/* What was begun is ended first: where something is freed all the time the last come to it, too. */
	if ((waiting->room || window != waiting->window) &&
	    (!waiting->at || waiting->stuck || waiting->at == waiting->first)) {
		waiting->room = false;
		waiting->window = window;
		waiting->n_passed = 0;
		set_at(waiting, waiting->first);
	}
	return waiting->stuck ? NULL : waiting->at;
}

void waiting_refused(struct service *service, struct waiter *waiter)
{
	struct waiting *waiting = &service->waiting;

	if (waiting->n_passed + 1 < WAITING_LOOKS && yields(service, waiter, window_of(service))) {
		waiting->n_passed++;
		set_at(waiting, waiter->next);
	} else {
		waiting->at = waiter;
		waiting->stuck = true;
	}
}

const struct waiter *waiting_claimant(const struct service *service)
{
	const struct waiter *waiter = service->waiting.first;
	uint64_t window = waiter ? window_of(service) : 0;

	for (unsigned looks = 0; waiter && looks < WAITING_LOOKS; looks++, waiter = waiter->next)
		if (!yields(service, waiter, window))
			return waiter;
	return NULL;
}

bool waiting_has_turn(const struct service *service, const struct waiter *waiter)
{
	uint64_t window = window_of(service);
	unsigned looks = 0;

	while ((waiter = waiter->prev) && ++looks < WAITING_LOOKS && yields(service, waiter, window))
		;
	return !waiter;
}

uint64_t waiting_window_end(const struct service *service)
{
	const struct waiting *waiting = &service->waiting;

	if (waiting->n < 2 || !service->events.now_ns || !passes_share(service, waiting->first))
		return WAITING_NEVER;
	return (window_of(service) + 1) * WAITING_WINDOW_NS;
}

/* ---- times ---- */

uint64_t waiting_deadline(const struct waiting *waiting)
{
	return waiting->deadline_ns;
}

struct waiter *waiting_expired(struct waiting *waiting, uint64_t now_ns)
{
	uint64_t earliest = WAITING_NEVER;

	if (now_ns < waiting->deadline_ns)
		return NULL;
	for (struct waiter *waiter = waiting->first; waiter; waiter = waiter->next) {
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
