/* Requests of a session with a token that were answered, whose answers may not have reached the client, and that
 * do not find any more what they found: sent again, they are refused. Kept in the store as ranges of ids, until
 * the client says that it has the answers. */
#ifndef SERVICE_STALE_H
#define SERVICE_STALE_H

#include <stdbool.h>
#include <stdint.h>

struct ids;
struct results_cell;
struct session;

/* Ranges that are added at once. Each has a cell, which the loop writes: 4,096 of them took 3 ms of one turn. */
enum { STALE_RANGES_MAX = 256 };

/* Adds the ranges of `ids`, which has one at least. Of more than STALE_RANGES_MAX neighbours become one range,
 * with the ids between them. Where there is no room, all ids up to them count as stale. Commits. */
void stale_add(struct session *session, const struct ids *ids);
bool stale_has(const struct session *session, uint64_t id);
/* The client has the answers of all requests with lower ids. Commits nothing. */
void stale_answered(struct session *session, uint64_t below);
/* What was found in the store of a session, by rising ids. */
void stale_restore(struct session *session, uint32_t cell, const struct results_cell *kept);
/* Forgets all of it: the session ends. Commits nothing. */
void stale_deinit(struct session *session);
/* The session ends here alone: its cells stay. */
void stale_leave(struct session *session);

#endif
