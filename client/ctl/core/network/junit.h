/* Outcomes as JUnit XML, which CI systems read. */
#ifndef CTL_CORE_NETWORK_JUNIT_H
#define CTL_CORE_NETWORK_JUNIT_H

#include <stdio.h>

#include <npumem/types.h>

struct junit_case {
	const char *suite, *name;
	double seconds;
	const char *failure; /* one line; NULL: it passed */
};

/* Writes cases, those of one suite next to each other, to FILE. 0 or INTERNAL: it cannot be written. */
int junit_write(const char *path, const char *title, const struct junit_case *cases, size_t n,
		struct npumem_error *error);

#endif
