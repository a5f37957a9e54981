/* One number for each user and kind: the time from which on the user owes nothing. */
#include "daemon/service/order/stops.h"

#include <inttypes.h>

#include "daemon/service/tables.h"

enum { NS_PER_MS = 1000000 };

static const char *const names[STOPS_KINDS] = {
	[STOPS_COMPACTIONS] = "compactions",
	[STOPS_MAPPINGS] = "mappings of shared memory",
};

static bool is_bounded(const struct limits_table *limits, uint32_t uid)
{
	return limits->stop_percent < 100 && uid && uid != limits->admin;
}

bool stops_is_bounded(const struct session *session)
{
	return session->service->events.now_ns && is_bounded(&session->service->limits, session->uid);
}

int stops_check(const struct session *session, enum stops_kind kind, struct npumem_error *error)
{
	const struct service *service = session->service;
	uint64_t until_ns = session->user->stops_until_ns[kind], retry_ms;

	if (!stops_is_bounded(session) || service->limits.n_uids <= 1 || service->events.now_ns() >= until_ns)
		return 0;
	retry_ms = (until_ns - service->events.now_ns() + NS_PER_MS - 1) / NS_PER_MS;
	npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
			 "%s of uid %" PRIu32 " may stop others for %u %% of the time: the next one in %" PRIu64
			 " ms",
			 names[kind], session->uid, service->limits.stop_percent, retry_ms);
	npumem_error_number(error, "retry_ms", (int64_t)retry_ms);
	npumem_error_number(error, "percent", service->limits.stop_percent);
	return NPUMEM_RESOURCE_EXHAUSTED;
}

void stops_charge_user(const struct limits_table *limits, struct limits_user *user, enum stops_kind kind,
		       uint64_t now_ns, uint64_t ns)
{
	uint64_t *until_ns = &user->stops_until_ns[kind];

	if (!is_bounded(limits, user->uid) || limits->n_uids <= 1)
		return;
	if (*until_ns < now_ns)
		*until_ns = now_ns;
	*until_ns += ns * (100 - limits->stop_percent) / limits->stop_percent;
}

void stops_charge(const struct session *session, enum stops_kind kind, uint64_t ns)
{
	const struct service *service = session->service;

	if (stops_is_bounded(session))
		stops_charge_user(&service->limits, session->user, kind, service->events.now_ns(), ns);
}
