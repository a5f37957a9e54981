/* Counts places before and after an allocation, so that a request is refused only for places that it takes
 * itself. */
#include "daemon/service/tensors/places.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/service/tables.h"

static unsigned share_cells(const struct places *places)
{
	return OCCUPANCY_CELLS / (places->n_users + 1);
}

static unsigned count_pieces(const struct session *session, const struct places *places)
{
	return occupancy_pieces(device_immovable(session->service->device), share_cells(places));
}

/* With reuse a tensor may share offsets with another one, and then cannot be moved. */
static bool may_be_immovable(const struct device_request *request)
{
	return request->pinned || request->spec.address != NPUMEM_ANY || request->reuse > NPUMEM_NEVER;
}

void places_before(const struct session *session, const struct device_request *requests, unsigned n,
		   struct places *places)
{
	const struct limits_table *limits = &session->service->limits;
	unsigned i = 0;

	while (i < n && !may_be_immovable(&requests[i]))
		i++;
	*places = (struct places){.is_free = i == n || limits->any_pins || session_is_admin(session)};
	if (places->is_free)
		return;
	places->n_users = limits->n_uids < PLACES_USERS_MAX ? (unsigned)limits->n_uids : PLACES_USERS_MAX;
	places->n_pieces = count_pieces(session, places);
}

int places_refuse(const struct session *session, const struct places *places, struct npumem_error *error)
{
	const struct device *device = session->service->device;
	int64_t npu_bytes = device_options(device)->geometry.npu_bytes, from, to;
	int64_t share = share_cells(places) * npu_bytes / OCCUPANCY_CELLS;
	char advice[96] = "";

	occupancy_spare(device_immovable(device), npu_bytes, share_cells(places), &from, &to);
	if (from < to)
		snprintf(advice, sizeof(advice),
			 "; pins at offsets %" PRId64 " to %" PRId64 " take nothing from others", from, to - 1);
	npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
			 "with this pinned tensor a place (%" PRId64
			 " bytes on each NPU) would not be left in one piece for each user%s",
			 share, advice);
	npumem_error_text(error, "limit", "places");
	npumem_error_number(error, "share_bytes", share);
	npumem_error_number(error, "spare_from", from);
	npumem_error_number(error, "spare_to", to);
	return NPUMEM_RESOURCE_EXHAUSTED;
}

bool places_are_left(const struct session *session, const struct places *places)
{
	unsigned n_left;

	if (places->is_free)
		return true;
	n_left = count_pieces(session, places);
	return n_left >= places->n_users || n_left >= places->n_pieces;
}
