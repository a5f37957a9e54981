/* The price of what stops all other users: the move of bytes in a compaction, and the map or unmap of shared
 * memory whose mappings the kernel takes long to change (server/process/mappings.h). A user may do the next thing
 * of a kind when the time for which that kind stopped others is at most limits.stop_percent of the time that has
 * passed. A user pays for that time, not for the wait before it. Root, the daemon's uid and an only user pay
 * nothing. */
#ifndef SERVICE_STOPS_H
#define SERVICE_STOPS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/service/limits.h"

struct npumem_error;
struct session;

enum {
	STOPS_LEAST_NS = 1000000, /* least charge of a compaction: other users wait for its start, too */
};

/* What a user pays for one kind at this moment. Good while the user has references. */
struct stops_price {
	_Atomic uint64_t *until_ns; /* until then the user owes; NULL: it pays nothing */
	unsigned percent;
};

/* Whether the session's compactions are bounded: they give way, and what would take long at once stays. It does
 * not depend on which other users are there, as these may come while one runs. */
bool stops_is_bounded(const struct session *session);
/* Whether the session may stop others now. 0; RESOURCE_EXHAUSTED with the field retry_ms. */
int stops_check(const struct session *session, enum stops_kind kind, struct npumem_error *error);
/* Others were stopped for `ns`. */
void stops_charge(const struct session *session, enum stops_kind kind, uint64_t ns);

struct stops_price stops_price(const struct session *session, enum stops_kind kind);
/* Of a user whose sessions may have ended. */
struct stops_price stops_price_of(const struct limits_table *limits, struct limits_user *user,
				  enum stops_kind kind);
/* Whether the user still owes, on any thread. */
bool stops_owes(const struct stops_price *price, uint64_t now_ns);
/* Others were stopped for `ns` until now_ns, on any thread: where two threads do so at once, one may count alone.
 */
void stops_pay(const struct stops_price *price, uint64_t now_ns, uint64_t ns);

#endif
