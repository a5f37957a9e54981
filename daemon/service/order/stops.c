/* One number for each user: the time from which on it owes nothing. */
#include "daemon/service/order/stops.h"

#include <inttypes.h>

#include "daemon/service/tables.h"

enum { NS_PER_MS = 1000000 };

bool stops_is_bounded(const struct session *session)
{
	const struct service *service = session->service;

	return service->events.now_ns && service->limits.stop_percent < 100 && !session_is_admin(session);
}

static bool is_charged(const struct session *session)
{
	return stops_is_bounded(session) && session->service->limits.n_uids > 1;
}

int stops_check(const struct session *session, struct npumem_error *error)
{
	const struct service *service = session->service;
	uint64_t until_ns = session->user->stops_until_ns, retry_ms;

	if (!is_charged(session) || service->events.now_ns() >= until_ns)
		return 0;
	retry_ms = (until_ns - service->events.now_ns() + NS_PER_MS - 1) / NS_PER_MS;
	npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
			 "compactions of uid %" PRIu32
			 " may stop others for %u %% of the time: the next one in %" PRIu64 " ms",
			 session->uid, service->limits.stop_percent, retry_ms);
	npumem_error_number(error, "retry_ms", (int64_t)retry_ms);
	npumem_error_number(error, "percent", service->limits.stop_percent);
	return NPUMEM_RESOURCE_EXHAUSTED;
}

void stops_charge(struct session *session, uint64_t ns)
{
	const struct service *service = session->service;
	uint64_t *until_ns = &session->user->stops_until_ns, now_ns;

	if (!is_charged(session))
		return;
	now_ns = service->events.now_ns();
	if (*until_ns < now_ns)
		*until_ns = now_ns;
	*until_ns += ns * (100 - service->limits.stop_percent) / service->limits.stop_percent;
}
