/* The price of a compaction: while its bytes move, no other request runs. A user may begin the next compaction
 * when the time for which its compactions stopped others is at most limits.stop_percent of the time that has
 * passed. A user pays for that time, not for the wait before it. Root, the daemon's uid and an only user pay
 * nothing. */
#ifndef SERVICE_STOPS_H
#define SERVICE_STOPS_H

#include <stdbool.h>
#include <stdint.h>

struct npumem_error;
struct session;

enum {
	STOPS_LEAST_NS = 1000000, /* least charge of a compaction: other users wait for its start, too */
};

/* Whether the session's compactions are bounded: they give way, and what would take long at once stays. It does
 * not depend on which other users are there, as these may come while one runs. */
bool stops_is_bounded(const struct session *session);
/* Whether the session may stop others now. 0; RESOURCE_EXHAUSTED with the field retry_ms. */
int stops_check(const struct session *session, struct npumem_error *error);
/* Others were stopped for `ns`. */
void stops_charge(struct session *session, uint64_t ns);

#endif
