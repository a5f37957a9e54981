/* A timeline for viewers of Chrome's trace events, such as Perfetto. */
#ifndef CTL_CORE_REPORT_TRACE_H
#define CTL_CORE_REPORT_TRACE_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

/* Writes {"traceEvents": …} of a chronicle (chronicle.h): a process for each session, in it tracks of DMA and
 * kernels, the waits before them with an arrow from what was waited for, and refusals as instants. What has no
 * times is left out. False: it could not be written. */
bool trace_write(FILE *out, const json_t *chronicle);

#endif
