/* One number for each user and kind: the time from which on the user owes nothing. */
#include "daemon/service/order/stops.h"

#include <inttypes.h>
#include <stdatomic.h>

#include "daemon/service/tables.h"

enum { NS_PER_MS = 1000000 };

static const char *const names[STOPS_KINDS] = {
	[STOPS_COMPACTIONS] = "compactions", [STOPS_MAPPINGS] = "mappings of shared memory", /* at ten times the
												time */
};

static bool is_bounded(const struct limits_table *limits, uint32_t uid)
{
	return limits->stop_percent < 100 && uid && uid != limits->admin;
}

bool stops_is_bounded(const struct session *session)
{
	return session->service->events.now_ns && is_bounded(&session->service->limits, session->uid);
}

_Atomic uint64_t *stops_time(const struct session *session, enum stops_kind kind)
{
	bool pays = stops_is_bounded(session) && session->service->limits.n_uids > 1;

	return pays ? &session->user->stops_until_ns[kind] : NULL;
}

int stops_check(const struct session *session, enum stops_kind kind, struct npumem_error *error)
{
	const struct service *service = session->service;
	_Atomic uint64_t *time = stops_time(session, kind);
	uint64_t until_ns = time ? atomic_load(time) : 0, now_ns = time ? service->events.now_ns() : 0, retry_ms;

	if (now_ns >= until_ns)
		return 0;
	retry_ms = (until_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS;
	npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
			 "%s of uid %" PRIu32 " may stop others for %u %% of the time: the next one in %" PRIu64
			 " ms",
			 names[kind], session->uid, service->limits.stop_percent, retry_ms);
	npumem_error_number(error, "retry_ms", (int64_t)retry_ms);
	npumem_error_number(error, "percent", service->limits.stop_percent);
	return NPUMEM_RESOURCE_EXHAUSTED;
}

void stops_add(_Atomic uint64_t *until_ns, unsigned percent, uint64_t now_ns, uint64_t ns)
{
	uint64_t from_ns = atomic_load(until_ns);

	/* Two threads may add at once: the time of one is lost then. */
	atomic_store(until_ns, (from_ns < now_ns ? now_ns : from_ns) + ns * (100 - percent) / percent);
}

void stops_charge_user(const struct limits_table *limits, struct limits_user *user, enum stops_kind kind,
		       uint64_t now_ns, uint64_t ns)
{
	if (is_bounded(limits, user->uid) && limits->n_uids > 1)
		stops_add(&user->stops_until_ns[kind], limits->stop_percent, now_ns, ns);
}

void stops_charge(const struct session *session, enum stops_kind kind, uint64_t ns)
{
	_Atomic uint64_t *time = stops_time(session, kind);

	if (time)
		stops_add(time, session->service->limits.stop_percent, session->service->events.now_ns(), ns);
}
