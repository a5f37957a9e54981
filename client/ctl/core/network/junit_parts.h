/* The JUnit files of a sweep's shards, made into one. */
#ifndef CTL_CORE_NETWORK_JUNIT_PARTS_H
#define CTL_CORE_NETWORK_JUNIT_PARTS_H

#include "client/ctl/core/sweep/parts.h"

/* Reads a file of junit_write and adds it. *why_not is set where it is empty or cut off: it is left out. 0,
 * INVALID (it cannot be read, it is not of junit_write, it is another sweep's), RESOURCE_EXHAUSTED. */
int junit_parts_read(struct parts *parts, const char *path, const char **why_not, struct npumem_error *error);

/* Writes the suites of the parts that count to a file, in the order of one run. 0; INTERNAL: it cannot be written;
 * INVALID: an item is in two of them; RESOURCE_EXHAUSTED. parts->n > 0. */
int junit_parts_write(const struct parts *parts, const char *path, struct npumem_error *error);

#endif
