/* The report: one file that a browser opens without anything else. */
#ifndef CTL_CORE_REPORT_PAGE_H
#define CTL_CORE_REPORT_PAGE_H

#include <stdio.h>

#include <jansson.h>

/* Writes the page about a chronicle (chronicle.h). False: it could not be written. */
bool page_write(FILE *out, const json_t *chronicle);

#endif
