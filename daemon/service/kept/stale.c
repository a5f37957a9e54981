/* A set of ids; each range has a cell of STORE_RESULTS. Invariant: after each commit the cells say the same as
 * session->stale and changed_below. */
#include "daemon/service/kept/stale.h"

#include "daemon/service/kept/ids.h"
#include "daemon/service/kept/persist.h"

static void put(struct session *session, const struct ids_range *range)
{
	struct results_cell cell = {
		.session = session->id, .request = range->first, .kind = RESULTS_STALE, .number = range->last};

	store_put(session->service->persist.store, STORE_RESULTS, range->cell, &cell, sizeof(cell));
}

static bool make(struct session *session, struct ids_range *range)
{
	struct npumem_error error = {.status = 0};

	persist_make_room(session->service, 1);
	if (persist_take_cell(session->service, STORE_RESULTS, 1, &range->cell, &error))
		return false;
	put(session, range);
	return true;
}

static void change(struct session *session, const struct ids_range *range)
{
	persist_make_room(session->service, 1);
	put(session, range);
}

static void drop(struct session *session, const struct ids_range *range)
{
	persist_make_room(session->service, 1);
	store_drop(session->service->persist.store, STORE_RESULTS, range->cell, 0);
	persist_give_cell(session->service, STORE_RESULTS, range->cell);
}

static const struct ids_keeper cells = {make, change, drop};

static void raise(struct session *session, uint64_t below)
{
	if (below <= session->changed_below)
		return;
	session->changed_below = below;
	persist_make_room(session->service, 1);
	persist_session_put(session);
}

void stale_add(struct session *session, const struct ids *ids)
{
	const struct ids_range *ranges = ids_ranges(ids);
	unsigned n_each = (ids->n + STALE_RANGES_MAX - 1) / STALE_RANGES_MAX;

	for (unsigned i = 0, next; i < ids->n; i = next) {
		uint64_t last;

		next = ids->n - i < n_each ? ids->n : i + n_each;
		last = ranges[next - 1].last;
		if (!ids_add(&session->stale, session, ranges[i].first, last, &cells))
			raise(session, last + 1);
	}
	persist_commit(&session->service->persist);
}

bool stale_has(const struct session *session, uint64_t id)
{
	return id < session->changed_below || ids_has(&session->stale, id);
}

void stale_answered(struct session *session, uint64_t below)
{
	ids_drop_below(&session->stale, session, below, &cells);
}

void stale_restore(struct session *session, uint32_t cell, const struct results_cell *kept)
{
	struct ids_range range = {kept->request, kept->number, cell};

	if (ids_append(&session->stale, session, &range))
		return;
	raise(session, range.last + 1);
	drop(session, &range);
}

void stale_deinit(struct session *session)
{
	ids_clear(&session->stale, session, &cells);
}

void stale_leave(struct session *session)
{
	ids_clear(&session->stale, session, NULL);
}
