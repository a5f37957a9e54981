/* Outcomes as JUnit XML, which CI systems read. */
#ifndef CTL_CORE_JUNIT_H
#define CTL_CORE_JUNIT_H

#include "client/ctl/core/sweep/parts.h"

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
