/* A record as the report's page and the trace want it. */
#ifndef CTL_CORE_REPORT_CHRONICLE_H
#define CTL_CORE_REPORT_CHRONICLE_H

#include <jansson.h>

#include <npumem/record.h>

/* {"device": …, "entries": […], "operations": […]} of a record in a file. NULL, with the error set. */
json_t *chronicle_read(const char *path, struct npumem_error *error);

#endif
