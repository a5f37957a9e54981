/* The price of a compaction: while its bytes move, nobody else's requests run. A user whose compactions have
 * stopped others for a time may begin the next one only when that time is at most limits.stop_percent of what has
 * passed. A user pays for the time itself, not for the wait before it. Root and the daemon's uid pay nothing, nor
 * does a user who is alone. */
#ifndef SERVICE_STOPS_H
#define SERVICE_STOPS_H

#include <stdbool.h>
#include <stdint.h>

struct npumem_error;
struct session;

enum {
	STOPS_LEAST_NS = 1000000, /* what a compaction is charged at least: the others wait for its turn, too */
};

/* Whether the session's user pays now. */
bool stops_is_charged(const struct session *session);
/* Whether the session may stop others now. 0; RESOURCE_EXHAUSTED with the field retry_ms. */
int stops_check(const struct session *session, struct npumem_error *error);
/* Others were stopped for `ns`. */
void stops_charge(struct session *session, uint64_t ns);

#endif
