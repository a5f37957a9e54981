/* One number for each user and kind: the time from which on the user owes nothing. */
#include "daemon/service/order/stops.h"

#include <inttypes.h>
#include <stdatomic.h>

#include "daemon/service/tables.h"

enum { NS_PER_MS = 1000000 };

static const char *const names[STOPS_KINDS] = {"compactions", "mappings of shared memory"};

static bool is_bounded(const struct limits_table *limits, uint32_t uid)
{
	return limits->stop_percent < 100 && uid && uid != limits->admin;
}

bool stops_is_bounded(const struct session *session)
{
	return session->service->events.now_ns && is_bounded(&session->service->limits, session->uid);
}

static struct stops_price make_price(const struct limits_table *limits, struct limits_user *user,
				     enum stops_kind kind, bool is_bound)
{
	bool pays = is_bound && limits->n_uids > 1;

	return (struct stops_price){pays ? &user->stops_until_ns[kind] : NULL, limits->stop_percent};
}

struct stops_price stops_price(const struct session *session, enum stops_kind kind)
{
	return make_price(&session->service->limits, session->user, kind, stops_is_bounded(session));
}

struct stops_price stops_price_of(const struct limits_table *limits, struct limits_user *user,
				  enum stops_kind kind)
{
	return make_price(limits, user, kind, is_bounded(limits, user->uid));
}

bool stops_owes(const struct stops_price *price, uint64_t now_ns)
{
	return price->until_ns && now_ns < atomic_load(price->until_ns);
}

void stops_pay(const struct stops_price *price, uint64_t now_ns, uint64_t ns)
{
	uint64_t from_ns;

	if (!price->until_ns)
		return;
	from_ns = atomic_load(price->until_ns);
	atomic_store(price->until_ns,
		     (from_ns < now_ns ? now_ns : from_ns) + ns * (100 - price->percent) / price->percent);
}

int stops_check(const struct session *session, enum stops_kind kind, struct npumem_error *error)
{
	struct stops_price price = stops_price(session, kind);
	uint64_t now_ns = price.until_ns ? session->service->events.now_ns() : 0, retry_ms;

	if (!stops_owes(&price, now_ns))
		return 0;
	retry_ms = (atomic_load(price.until_ns) - now_ns + NS_PER_MS - 1) / NS_PER_MS;
	npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
			 "%s of uid %" PRIu32 " may stop others for %u %% of the time: the next one in %" PRIu64
			 " ms",
			 names[kind], session->uid, price.percent, retry_ms);
	npumem_error_number(error, "retry_ms", (int64_t)retry_ms);
	npumem_error_number(error, "percent", price.percent);
	return NPUMEM_RESOURCE_EXHAUSTED;
}

void stops_charge(const struct session *session, enum stops_kind kind, uint64_t ns)
{
	struct stops_price price = stops_price(session, kind);

	if (price.until_ns)
		stops_pay(&price, session->service->events.now_ns(), ns);
}
