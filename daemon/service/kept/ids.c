/* Ranges in an array in order. Invariant: of two neighbours the first ends at least two ids before the second
 * begins; the memory of `many` is charged. */
#include "daemon/service/kept/ids.h"

#include <string.h>

static struct ids_range *all(struct ids *ids)
{
	return ids->many ? ids->many : ids->few;
}

/* The first range that ends at `id` or later; n: there is none. Mostly it is the last one, or beyond it. */
static unsigned find(const struct ids *ids, uint64_t id)
{
	const struct ids_range *ranges = ids_ranges(ids);
	unsigned from = 0, to = ids->n;

	if (to && ranges[to - 1].last < id)
		return to;
	while (from < to) {
		unsigned middle = (from + to) / 2;

		if (ranges[middle].last < id)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

bool ids_has(const struct ids *ids, uint64_t id)
{
	unsigned at = find(ids, id);

	return at < ids->n && ids_ranges(ids)[at].first <= id;
}

static bool grow(struct ids *ids, struct session *session)
{
	struct service *service = session->service;
	unsigned room = ids->many ? 4 * ids->room : 16 * IDS_FEW;
	uint64_t bytes = (room - ids->room) * sizeof(*ids->many);
	struct npumem_error error = {.status = 0};
	struct ids_range *many;

	if (ids->n == IDS_MAX ||
	    limits_check(&service->limits, session->user, LIMITS_REQUEST_BYTES, bytes, &error))
		return false;
	many = heap_alloc(service->heap, room * sizeof(*many));
	if (!many)
		return false;
	memcpy(many, all(ids), ids->n * sizeof(*many));
	heap_free(service->heap, ids->many);
	limits_charge(&service->limits, session->user, LIMITS_REQUEST_BYTES, bytes);
	ids->many = many;
	ids->room = room;
	return true;
}

static bool insert(struct ids *ids, struct session *session, unsigned at, const struct ids_range *range)
{
	if (ids->n == (ids->many ? ids->room : IDS_FEW) && !grow(ids, session))
		return false;
	memmove(&all(ids)[at + 1], &all(ids)[at], (ids->n - at) * sizeof(*range));
	all(ids)[at] = *range;
	ids->n++;
	return true;
}

/* Removes n ranges from `at` on. */
static void take_out(struct ids *ids, struct session *session, unsigned at, unsigned n,
		     const struct ids_keeper *keeper)
{
	struct ids_range *ranges = all(ids);

	for (unsigned i = at; keeper && i < at + n; i++)
		keeper->drop(session, &ranges[i]);
	memmove(&ranges[at], &ranges[at + n], (ids->n - at - n) * sizeof(*ranges));
	ids->n -= n;
}

/* Extends the range at `at` by these ids, and joins the ranges that it then touches. */
static void join(struct ids *ids, struct session *session, unsigned at, uint64_t first, uint64_t last,
		 const struct ids_keeper *keeper)
{
	struct ids_range *range = &all(ids)[at];
	unsigned n = 0;

	if (range->first <= first && last <= range->last)
		return;
	range->first = first < range->first ? first : range->first;
	range->last = last > range->last ? last : range->last;
	while (at + n + 1 < ids->n && range[n + 1].first - 1 <= range->last)
		if (range[++n].last > range->last)
			range->last = range[n].last;
	/* First: a process that dies between the two leaves too many ids in the store, not too few. */
	if (keeper)
		keeper->change(session, range);
	if (n)
		take_out(ids, session, at + 1, n, keeper);
}

/* The usual case. */
static bool follows(const struct ids *ids, uint64_t first)
{
	return ids->n && ids_ranges(ids)[ids->n - 1].last + 1 == first;
}

bool ids_add(struct ids *ids, struct session *session, uint64_t first, uint64_t last,
	     const struct ids_keeper *keeper)
{
	unsigned at = follows(ids, first) ? ids->n - 1 : find(ids, first ? first - 1 : 0);
	struct ids_range range = {.first = first, .last = last};
	bool touches = at < ids->n && (last == UINT64_MAX || ids_ranges(ids)[at].first <= last + 1);

	if (!touches && insert(ids, session, at, &range)) {
		if (!keeper || keeper->make(session, &all(ids)[at]))
			return true;
		take_out(ids, session, at, 1, NULL);
	}
	if (!ids->n)
		return false;
	join(ids, session, at < ids->n ? at : at - 1, first, last, keeper);
	return true;
}

bool ids_append(struct ids *ids, struct session *session, const struct ids_range *range)
{
	const struct ids_range *last = ids->n ? &ids_ranges(ids)[ids->n - 1] : NULL;

	if (range->last < range->first || (last && range->first <= last->last))
		return false;
	return insert(ids, session, ids->n, range);
}

void ids_drop_below(struct ids *ids, struct session *session, uint64_t below, const struct ids_keeper *keeper)
{
	unsigned n = ids->n ? find(ids, below) : 0;

	if (!ids->n)
		return;
	if (n == ids->n)
		ids_clear(ids, session, keeper);
	else if (n)
		take_out(ids, session, 0, n, keeper);
}

void ids_clear(struct ids *ids, struct session *session, const struct ids_keeper *keeper)
{
	take_out(ids, session, 0, ids->n, keeper);
	if (!ids->many)
		return;
	limits_give_back(&session->service->limits, session->user, LIMITS_REQUEST_BYTES,
			 ids->room * sizeof(*ids->many));
	heap_free(session->service->heap, ids->many);
	ids->many = NULL;
	ids->room = 0;
}
