/* Which accesses conflict, to one root and to two that meet, and whether an access has such an earlier one in the
 * queues. Changes no queue. */
#ifndef SERVICE_CONFLICTS_H
#define SERVICE_CONFLICTS_H

#include "daemon/service/order/entries.h"

struct meeting;

/* Of two accesses to one root. */
bool conflicts_between(const struct scheduler_access *a, const struct scheduler_access *b);
enum conflicts_found { CONFLICTS_NONE, CONFLICTS_FOUND, CONFLICTS_UNKNOWN };

/* Whether an earlier access, or one that has started, conflicts with this one, which is in its queue. Goes on from
 * `*at`, its `prev` at first, towards the front of the queue. CONFLICTS_UNKNOWN: it has compared `*most`, and goes
 * on from `*at` when it is called again. Counts `*most` down. */
enum conflicts_found conflicts_find(const struct scheduler_access *access, struct scheduler_access **at,
				    unsigned *most);
/* Whether each later access waits for it. */
bool conflicts_holds_up_all(const struct scheduler_access *access);

/* Whether it may conflict with an access to a root that its own root meets. Most cannot, as no kernel writes the
 * footprint of a tensor that others were placed over safely: a list with a thousand accesses to roots that each
 * meet hundreds walks none of these. */
bool conflicts_may_elsewhere(const struct scheduler_access *access);
/* Two roots that meet delay each other only where a kernel writes the footprint of one: a queue without such a
 * kernel is not walked, as a host may have hundreds of guests with long queues. */
bool conflicts_may_across(const struct scheduler_access *access, const struct meeting *meeting);
/* The first access to the other root of a meeting. A root that is being placed has no record yet. */
struct scheduler_access *conflicts_first_met(const struct meeting *meeting);

#endif
