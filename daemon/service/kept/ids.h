/* A set of request ids, of those that a client may send again: ranges, as most ids come one after the other. The
 * memory is charged to the session's user and bounded: without room for one more range, two ranges are joined, and
 * the ids between them count as members. */
#ifndef SERVICE_IDS_H
#define SERVICE_IDS_H

#include "daemon/service/tables.h"

enum { IDS_MAX = 4096 }; /* ranges: as many requests may be under way between those that were answered */

/* Callbacks that keep a copy of the ranges elsewhere. */
struct ids_keeper {
	bool (*make)(struct session *session, struct ids_range *range); /* a new one; false: there is no room */
	void (*change)(struct session *session, const struct ids_range *range);
	void (*drop)(struct session *session, const struct ids_range *range);
};

/* Adds [first, last]. False: there is no room, not even for the first range. `keeper` may be NULL. */
bool ids_add(struct ids *ids, struct session *session, uint64_t first, uint64_t last,
	     const struct ids_keeper *keeper);
/* Adds a restored range, which must be behind all others. False: it is not, or there is no room. */
bool ids_append(struct ids *ids, struct session *session, const struct ids_range *range);
bool ids_has(const struct ids *ids, uint64_t id);
/* Drops the ranges whose ids are all lower. */
void ids_drop_below(struct ids *ids, struct session *session, uint64_t below, const struct ids_keeper *keeper);
/* Drops all ranges, and frees the memory. */
void ids_clear(struct ids *ids, struct session *session, const struct ids_keeper *keeper);

static inline const struct ids_range *ids_ranges(const struct ids *ids)
{
	return ids->many ? ids->many : ids->few;
}

#endif
