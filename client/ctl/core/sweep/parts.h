/* The parts of a sweep, read from files: which of them count, and what is missing. */
#ifndef CTL_CORE_SWEEP_PARTS_H
#define CTL_CORE_SWEEP_PARTS_H

#include "client/ctl/core/sweep/sweep.h"

#define PARTS_NONE SIZE_MAX

struct part {
	const char *path; /* the caller's */
	struct sweep_part of;
	json_t *report; /* of a report */
	char *suites;	/* of a JUnit file: its suites as they are written */
	size_t by;	/* the part that has taken its place; PARTS_NONE: it counts */
};

struct parts {
	struct part *list;
	size_t n;
};

/* `by` need not be set. Of two of one shard the later one counts, by its time, of one time the one that is added
 * later. 0 or INVALID: it is another sweep's. */
int parts_add(struct parts *parts, const struct part *part, struct npumem_error *error);

/* The part that counts of a shard, from 1; NULL: it is missing. */
const struct part *parts_of(const struct parts *parts, unsigned shard);
/* A new array of the shards that are missing. */
json_t *parts_missing(const struct parts *parts);
/* The one part that all of them make together. parts->n > 0. */
void parts_whole(const struct parts *parts, struct sweep_part *whole);

#endif
