/* A sweep: items that may run anywhere and in any order, shared out to N shards. What the shards say of themselves
 * is the same wherever they ran, so that their reports can be added up. */
#ifndef CTL_CORE_SWEEP_SWEEP_H
#define CTL_CORE_SWEEP_SWEEP_H

#include <jansson.h>
#include <npumem/types.h>

enum { SWEEP_SHARDS_MAX = 4096, SWEEP_ID_BYTES = 17 };

/* What a shard's report is of. */
struct sweep_part {
	char id[SWEEP_ID_BYTES];    /* the same of all runs of a sweep, in how many shards ever */
	char split[SWEEP_ID_BYTES]; /* the same of all shards of one */
	char run[SWEEP_ID_BYTES];   /* the same of no two processes */
	unsigned shard, n_shards;   /* from 1 */
	size_t n_items;		    /* of all shards */
	double time;		    /* when it was over, in seconds since 1970 */
};

struct sweep_item {
	char *name;	/* the same on every host; of several with one name the costs are one's */
	double cost;	/* seconds that it is expected to take, or all the same */
	unsigned shard; /* from 1; 0: none yet */
	bool ran;
	double seconds;
};

struct sweep {
	const char *command;
	struct sweep_item *items; /* in the order of one run */
	size_t n;
	unsigned shard, n_shards; /* ours, from 1, and all */
	bool is_shared;		  /* --shard was given */
	uint64_t content;	  /* of all that two runs of this sweep have in common */
	uint64_t split;		  /* of which item is whose; of one run the same for all */
};

/* One run of everything, without an item yet. `command` stays the caller's. */
void sweep_init(struct sweep *sweep, const char *command);

/* Reads "I/N", 1 <= I <= N. 0 or INVALID. */
int sweep_shard(struct sweep *sweep, const char *text, struct npumem_error *error);
/* Adds an item. */
void sweep_add(struct sweep *sweep, const char *name);
/* Mixes in what else a run depends on: a sweep over other bytes is another sweep. */
void sweep_mix(struct sweep *sweep, const void *bytes, size_t n);
/* The same of a file's bytes; of a pipe's, which are there only once, nothing. 0 or INVALID: it cannot be read. */
int sweep_mix_file(struct sweep *sweep, const char *path, struct npumem_error *error);

/* Takes the seconds of an earlier report, of this sweep or another that has some of its items; those that it has
 * not cost the mean of those that it has. 0 or INVALID. */
int sweep_costs(struct sweep *sweep, const char *path, struct npumem_error *error);
/* Says whose each item is: the longest first, each to the shard that has least to do so far, of several to the
 * first. Items of one cost go in their order. */
void sweep_assign(struct sweep *sweep);

bool sweep_is_ours(const struct sweep *sweep, size_t item);
size_t sweep_n_ours(const struct sweep *sweep);

/* What this run is a part of, as of this moment. */
void sweep_part(const struct sweep *sweep, struct sweep_part *part);
/* Adds that to a report as "command" and "sweep", and as "items" those that ran with their seconds. */
void sweep_json(const struct sweep *sweep, const struct sweep_part *part, json_t *report);
/* "sweep" alone: a new object. */
json_t *sweep_part_json(const struct sweep_part *part);

/* parts.c. The parts of a sweep, read from files; names the parts that are missing. */

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

/* merge.c. The reports of a sweep's shards, added up: the sum is what one run of everything would have said. */

/* Reads a report and adds it. *why_not is set where the file is not one that was finished (empty, cut off, or what
 * a command says that failed): it is left out. 0, INVALID (it cannot be read, it is no report of a sweep, it is
 * another sweep's). */
int merge_read(struct parts *parts, const char *path, const char **why_not, struct npumem_error *error);

/* The sum of the parts that count: a new object, or NULL, where `error` says why: INVALID, where an item is in two
 * of them or in none though no shard is missing. parts->n > 0. */
json_t *merge_sum(const struct parts *parts, struct npumem_error *error);

/* Copies into a report of replays what its first case that differs says beside its counts; else its first. */
void merge_first(json_t *report);

/* junit.c. Outcomes as JUnit XML, which CI systems read. */

struct junit_case {
	size_t item; /* of the sweep: those of one are a suite */
	const char *title, *suite, *name;
	double seconds;
	const char *failure; /* one line; NULL: it passed */
};

/* Writes cases, those of one item next to each other, to FILE, and in a comment what it is a part of. 0 or
 * INTERNAL: it cannot be written. */
int junit_write(const char *path, const struct sweep_part *part, const struct junit_case *cases, size_t n,
		struct npumem_error *error);

/* ---- the files of a sweep's shards, made into one ---- */

/* Reads a file of junit_write and adds it. *why_not is set where it is empty or cut off: it is left out. 0,
 * INVALID (it cannot be read, it is not of junit_write, it is another sweep's). */
int junit_parts_read(struct parts *parts, const char *path, const char **why_not, struct npumem_error *error);

/* Writes the suites of the parts that count to a file, in the order of one run. 0; INTERNAL: it cannot be written;
 * INVALID: an item is in two of them. parts->n > 0. */
int junit_parts_write(const struct parts *parts, const char *path, struct npumem_error *error);

#endif
