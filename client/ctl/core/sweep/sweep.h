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

#endif
