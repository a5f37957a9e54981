/* The reports of a sweep's shards, added up: the sum is what one run of everything would have said. */
#ifndef CTL_CORE_SWEEP_MERGE_H
#define CTL_CORE_SWEEP_MERGE_H

#include "client/ctl/core/sweep/parts.h"

/* Reads a report and adds it. *why_not is set where the file is not one that was finished (empty, cut off, or what
 * a command says that failed): it is left out. 0, INVALID (it cannot be read, it is no report of a sweep, it is
 * another sweep's). */
int merge_read(struct parts *parts, const char *path, const char **why_not, struct npumem_error *error);

/* The sum of the parts that count: a new object, or NULL, where `error` says why: INVALID, where an item is in two
 * of them or in none though no shard is missing. parts->n > 0. */
json_t *merge_sum(const struct parts *parts, struct npumem_error *error);

/* Copies into a report of replays what its first case that differs says beside its counts; else its first. */
void merge_first(json_t *report);

#endif
