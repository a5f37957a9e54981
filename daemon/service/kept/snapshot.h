/* The one snapshot of a device that there may be: whose it is, and that the device tells the store of what is
 * about to change. What it holds is in the books of its uid, as scratch_bytes, and no more than the state itself
 * takes.
 */
#ifndef SERVICE_SNAPSHOT_H
#define SERVICE_SNAPSHOT_H

#include <npumem/types.h>

struct session;

/* Whether a session may have one. 0; PERMISSION_DENIED; FAILED_PRECONDITION (nothing outlives this daemon, or
 * there is one). */
int snapshot_check(const struct session *session, struct npumem_error *error);
/* The session's, of this moment, at which nothing runs. 0; RESOURCE_EXHAUSTED. */
int snapshot_begin(struct session *session, struct npumem_error *error);
/* Whether this is the session's. 0; NOT_FOUND. */
int snapshot_find(const struct session *session, uint64_t number, struct npumem_error *error);
/* After a piece of it was made: counts what it holds; the last one ends it. */
void snapshot_told(struct session *session);
/* The session's, if it has one; no piece is being made. True: then there is host memory to give back, by
 * snapshot_give_back(service) on any thread and snapshot_gone on this one; until then there can be no other. */
bool snapshot_end(struct session *session);
void snapshot_give_back(void *service);
void snapshot_gone(void *service);

#endif
