/* Outcomes as JUnit XML, which CI systems read. */
#ifndef CTL_CORE_NETWORK_JUNIT_H
#define CTL_CORE_NETWORK_JUNIT_H

#include <stdio.h>

#include "client/ctl/core/sweep/sweep.h"

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

/* ---- for junit_parts.c ---- */

/* All before the first suite, and all after the last: closes FILE. 0 or INTERNAL. */
void junit_head(FILE *file, const struct sweep_part *part);
int junit_tail(FILE *file, const char *path, struct npumem_error *error);

#endif
