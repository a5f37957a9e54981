/* A queue for each user, and a queue of the users that have one. Each waiting request is tried at most once per
 * round. A round begins after something was freed or moved, and after each request whose turn it was has been
 * tried in the round before. Invariant: without `is_due` and `room` there is no request to try.
 *
 * The searches of different users go on beside each other. What one of them holds, as of 256 tensors that it has
 * places for, may be what another one lacks, so a search that failed is repeated once the other one has failed,
 * too. There is one repeated search at a time: two that fail for each other's sake would begin again without end.
 */
#include "daemon/service/order/waiting.h"

#include <utlist.h>

#include "daemon/device/arena/arena.h"
#include "daemon/device/placement/fits_empty.h"
#include "daemon/service/tables.h"

void waiting_init(struct waiting *waiting, struct limits_table *limits)
{
	*waiting = (struct waiting){.limits = limits, .deadline_ns = WAITING_NEVER, .round = 1};
}

/* ---- the queues ---- */

bool waiting_is_searched_for(const struct waiter *waiter)
{
	return waiter->user && waiter->user->searching == waiter;
}

int waiting_add(struct waiting *waiting, struct waiter *waiter, struct npumem_error *error)
{
	struct limits_user *user = waiter->user;
	int status = limits_check(waiting->limits, user, LIMITS_WAITING, 1, error);

	if (status)
		return status;
	limits_charge(waiting->limits, user, LIMITS_WAITING, 1);
	if (waiter->deadline_ns < waiting->deadline_ns)
		waiting->deadline_ns = waiter->deadline_ns;
	/* If no other one waits, it was refused without any claims: it is not tried again in this round. */
	waiter->tried = waiting->n++ ? 0 : waiting->round;
	if (!user->waiters)
		DL_APPEND2(waiting->first, user, prev_turn, next_turn);
	DL_APPEND(user->waiters, waiter);
	waiting->is_due = true;
	return 0;
}

static void search_ends(struct waiting *waiting, struct waiter *waiter)
{
	if (!waiting_is_searched_for(waiter))
		return;
	waiter->user->searching = NULL;
	waiter->search_ended = waiting->n_searches;
	if (waiting->repeating == waiter)
		waiting->repeating = NULL;
}

void waiting_claims_changed(struct waiting *waiting)
{
	waiting->is_due = true;
	waiting->room |= waiting->has_yielded;
}

void waiting_remove(struct waiting *waiting, struct waiter *waiter)
{
	struct limits_user *user = waiter->user;

	DL_DELETE(user->waiters, waiter);
	if (!user->waiters)
		DL_DELETE2(waiting->first, user, prev_turn, next_turn);
	limits_give_back(waiting->limits, user, LIMITS_WAITING, 1);
	waiting_claims_changed(waiting);
	search_ends(waiting, waiter);
	/* Else the earliest deadline stays: a timer that fires for nothing costs less than a search each time. */
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

static uint64_t window(const struct service *service)
{
	return service->events.now_ns ? service->events.now_ns() / WAITING_WINDOW_NS : 0;
}

/* In every second window only: what a user waits for may never be freed, and the user decides how long it waits.
 */
static bool is_kept_from_others(const struct service *service)
{
	return window(service) % 2 == 0;
}

static bool exceeds(const struct waiter *waiter, uint64_t bytes)
{
	return waiter->bytes > bytes || waiter->user->now[LIMITS_DEVICE_BYTES] > bytes - waiter->bytes;
}

static bool has_addresses(const struct waiter *waiter)
{
	return waiter->from < waiter->to;
}

/* Whether there is a place for it between its user's tensors and those that cannot be moved. Cheap if neither has
 * changed. It may miss a place, as it counts in cells (occupancy.h). */
static bool has_place(const struct service *service, const struct waiter *waiter)
{
	int64_t npu_bytes = device_options(service->device)->geometry.npu_bytes;
	struct limits_user *user = waiter->user;

	occupancy_gaps_update(&user->gaps, npu_bytes, &user->places, device_immovable(service->device));
	if (has_addresses(waiter))
		return !waiter->anywhere && occupancy_gaps_has(&user->gaps, npu_bytes, waiter->from, waiter->to);
	return waiter->anywhere <= user->gaps.longest;
}

bool waiting_is_held_back(const struct waiter *waiter)
{
	const struct scheduler_user *order = &waiter->user->order;

	return order->is_short || (waiter->reuses && order->exclusive);
}

/* Whether it could be granted if others gave back all that they can. */
static bool holds_others_up(const struct service *service, const struct waiter *waiter)
{
	return !waiting_is_held_back(waiter) &&
	       !exceeds(waiter, limits_most(&service->limits, waiter->user, LIMITS_DEVICE_BYTES)) &&
	       has_place(service, waiter);
}

/* Adds what the requests of `from` claim from those of `user`. A user's own later requests always wait for its
 * first one: otherwise small ones would take all the room that is freed for it. */
static void add_claims(const struct service *service, const struct limits_user *from,
		       const struct limits_user *user, struct waiting_claims *claims)
{
	for (const struct waiter *waiter = from->waiters; waiter; waiter = waiter->next) {
		bool has_range = has_addresses(waiter);

		if (!(has_range && claims->range) && (from == user || holds_others_up(service, waiter)))
			*(has_range ? &claims->range : &claims->extent) = waiter;
		/* The requests behind it wait for it. */
		if (!has_range)
			return;
	}
}

struct waiting_claims waiting_claims(const struct service *service, const struct limits_user *user)
{
	const struct limits_user *from = service->waiting.first;
	bool is_kept = from && is_kept_from_others(service);
	struct waiting_claims claims = {.extent = NULL};

	for (; from && !claims.extent; from = from->next_turn)
		if (is_kept || from == user)
			add_claims(service, from, user, &claims);
	return claims;
}

/* A cheap check that a try would fail: many requests that wait in vain cost others nothing. */
static bool cannot_fit(const struct service *service, const struct waiter *waiter)
{
	int64_t free_bytes, largest;

	if (waiter->reuses)
		return false;
	device_room(service->device, &free_bytes, &largest);
	return waiter->least > largest || (has_addresses(waiter) && waiter->from % ARENA_QUANTUM == 0 &&
					   device_is_taken(service->device, waiter->from));
}

/* The users' searches take turns, and so do those of one user. */
static bool is_before(const struct waiter *a, const struct waiter *b)
{
	return a->user != b->user ? a->user->searched < b->user->searched : a->tried < b->tried;
}

static bool may_be_searched_for(const struct waiting *waiting, const struct waiter *waiter, bool is_untried)
{
	return waiter->reuses && !waiter->user->searching &&
	       (is_untried || (waiter->failed_beside && !waiting->repeating));
}

/* The first request that was not tried in this round and that no other one holds up; a search only if there is no
 * other request. */
static struct waiter *untried(const struct service *service)
{
	const struct waiting *waiting = &service->waiting;
	const struct limits_user *user = waiting->first;
	bool is_kept = user && is_kept_from_others(service), is_held_up = false;
	struct waiter *search = NULL;

	for (; user && !is_held_up; user = user->next_turn)
		for (struct waiter *waiter = user->waiters; waiter; waiter = waiter->next) {
			bool is_untried = waiter->tried != waiting->round && !cannot_fit(service, waiter);

			if (is_untried && !waiter->reuses)
				return waiter;
			if (!is_untried)
				waiter->tried = waiting->round;
			if (may_be_searched_for(waiting, waiter, is_untried) &&
			    (!search || is_before(waiter, search)))
				search = waiter;
			if (has_addresses(waiter))
				continue;
			is_held_up = is_kept && holds_others_up(service, waiter);
			break;
		}
	return search;
}

void waiting_try_again(struct waiting *waiting, struct limits_user *user)
{
	for (struct waiter *waiter = user->waiters; waiter; waiter = waiter->next)
		waiter->tried = waiting->round - 1;
	waiting->is_due = true;
}

/* Those that were tried meanwhile may have failed for what it held. */
void waiting_gives_back(struct waiting *waiting, const struct waiter *waiter)
{
	if (!waiting_is_searched_for(waiter)) {
		waiting->room = true;
		return;
	}
	for (struct waiter *other = first(waiting); other; other = after(other))
		if (!other->reuses)
			other->tried = waiting->round - 1;
		else if (other != waiter &&
			 (waiting_is_searched_for(other) || other->search_ended >= waiter->search))
			other->failed_beside = true;
}

void waiting_search_begins(struct waiting *waiting, struct waiter *waiter)
{
	waiter->user->searching = waiter;
	waiter->user->searched = waiter->search = ++waiting->n_searches;
	if (waiter->is_repeated)
		waiting->repeating = waiter;
}

void waiting_search_ended(struct waiting *waiting, struct waiter *waiter)
{
	search_ends(waiting, waiter);
	if (waiter->deadline_ns < waiting->deadline_ns)
		waiting->deadline_ns = waiter->deadline_ns;
	waiting->is_due = true;
}

struct waiter *waiting_next(struct service *service)
{
	struct waiting *waiting = &service->waiting;
	struct waiter *waiter = waiting->is_due || waiting->room ? untried(service) : NULL;

	/* Not earlier: if something is freed all the time, the last ones must be tried, too. */
	if (!waiter && waiting->room) {
		waiting->room = waiting->has_yielded = false;
		waiting->round++;
		waiter = untried(service);
	}
	waiting->is_due = waiter != NULL;
	if (!waiter)
		return NULL;
	waiter->is_repeated = waiter->tried == waiting->round;
	waiter->failed_beside = false;
	waiter->tried = waiting->round;
	return waiter;
}

uint64_t waiting_window_end(const struct service *service)
{
	if (service->waiting.n < 2 || !service->events.now_ns)
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
		if (waiting_is_searched_for(waiter))
			continue;
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
	waiter->anywhere = waiter->least = 0;
	waiter->reuses = false;
	for (unsigned i = 0; i < n; i++) {
		struct npumem_place place;

		if (npumem_place_resolve(geometry, &requests[i].spec, &place, NULL))
			continue;
		/* Far from overflow: each was found to fit an NPU. */
		waiter->bytes += (uint64_t)(place.bytes_per_npu * geometry->n_npus);
		waiter->reuses |= requests[i].reuse > NPUMEM_NEVER;
		if (place.bytes_per_npu > waiter->least)
			waiter->least = place.bytes_per_npu;
		if (requests[i].spec.address == NPUMEM_ANY) {
			waiter->anywhere =
				(waiter->anywhere + ARENA_ALIGN_MAX - 1) / ARENA_ALIGN_MAX * ARENA_ALIGN_MAX +
				place.bytes_per_npu;
			continue;
		}
		if (place.offset < waiter->from)
			waiter->from = place.offset;
		if (place.offset + place.bytes_per_npu > waiter->to)
			waiter->to = place.offset + place.bytes_per_npu;
	}
	return true;
}
