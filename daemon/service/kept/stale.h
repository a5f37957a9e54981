/* Requests that are not repeatable: they belong to a session with a token, their answers may not have reached the
 * client, and the data that they read has changed since. Sent again, they are refused. Kept in the store as ranges
 * of ids, until the client acknowledges the answers. */
#ifndef SERVICE_STALE_H
#define SERVICE_STALE_H

#include <stdbool.h>
#include <stdint.h>

struct ids;
struct results_cell;
struct session;

/* Ranges that one call adds. Each has a cell, which the loop writes: 4,096 of them took 3 ms of one turn. */
enum { STALE_RANGES_MAX = 256 };

/* Adds the ranges of `ids`, which has one at least. If there are more than STALE_RANGES_MAX, neighbours are
 * joined, with the ids between them. Without room, all ids up to theirs count as stale. Commits. */
void stale_add(struct session *session, const struct ids *ids);
bool stale_has(const struct session *session, uint64_t id);
/* The client has the answers of all requests with lower ids. Commits nothing. */
void stale_answered(struct session *session, uint64_t below);
/* Adds a restored range, by rising ids. */
void stale_restore(struct session *session, uint32_t cell, const struct results_cell *kept);
/* Drops all ranges: the session ends. Commits nothing. */
void stale_deinit(struct session *session);
/* The session ends in this process only: its cells stay. */
void stale_leave(struct session *session);

#endif
