/* The one snapshot that a device can have: its owner, and the callback with which the device announces changes to
 * the store. Its memory is charged to its user as scratch_bytes, and is no more than the state itself takes. */
#ifndef SERVICE_SNAPSHOT_H
#define SERVICE_SNAPSHOT_H

#include <npumem/types.h>

struct session;

/* Whether a session may begin one. 0; PERMISSION_DENIED; FAILED_PRECONDITION (the daemon has no state, or there is
 * a snapshot). */
int snapshot_check(const struct session *session, struct npumem_error *error);
/* Begins a snapshot of this moment, at which nothing runs. 0; RESOURCE_EXHAUSTED. */
int snapshot_begin(struct session *session, struct npumem_error *error);
/* Whether this is the session's. 0; NOT_FOUND. */
int snapshot_find(const struct session *session, uint64_t number, struct npumem_error *error);
/* After a piece was made: updates the charge; the last piece ends the snapshot. */
void snapshot_told(struct session *session);
/* Ends the session's snapshot, if it has one; no piece is being made. True: the caller calls
 * snapshot_give_back(service) on any thread, to free host memory, and then snapshot_gone on this one; until then
 * no other can begin. */
bool snapshot_end(struct session *session);
void snapshot_give_back(void *service);
void snapshot_gone(void *service);

#endif
