/* Records for people: as a trace, and as a page. */
#ifndef CTL_CORE_REPORT_REPORT_H
#define CTL_CORE_REPORT_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>
#include <npumem/record.h>

/* A record as the report's page and the trace want it. */

/* {"device": …, "entries": […], "operations": […]} of a record in a file, and "cut_at_byte" of one that has no
 * end. NULL, with the error set. */
json_t *chronicle_read(const char *path, struct npumem_error *error);

/* operations.c. What ran, from the entries of a record (npumem_replay_each, as a list): one operation a row, those
 * of lists too.
 */

/* Objects of: request (its number), index (in its list, -1: alone), session, uid, pid, queue ("dma", "kernel"),
 * name (write, conv2d …), tensors ([role, handle, writes, name]), came, start, end (ns; only where the daemon told
 * them), saturated, wrapped, macs, destroyed (bytes), warning; where it did not begin as it came and another is
 * seen to have ended meanwhile, waited_for (its row) and why: "tensor" (that both use, and one of the two writes),
 * "queue" (both are DMA, or kernels). */
json_t *operations_of(const json_t *entries);

/* memory.c. What a device holds while a record runs. */

/* An array: {"at": ns, "data", "dummy", "padding", "empty": bytes of all NPUs} after each request that changed
 * them, the first of what was there before the record. */
json_t *memory_of(const json_t *entries);

/* trace.c. A timeline for viewers of Chrome's trace events, such as Perfetto. */

/* Writes {"traceEvents": …} of a chronicle: a process for each session, in it tracks of DMA and
 * kernels, the waits before them with an arrow from what was waited for, and refusals as instants. What has no
 * times is left out. False: it could not be written. */
bool trace_write(FILE *out, const json_t *chronicle);

/* The report: one file that a browser opens without anything else. */

/* Writes the page about a chronicle. False: it could not be written. */
bool page_write(FILE *out, const json_t *chronicle);

/* The page's own files, put into files.c by the build. */

extern const char files_html[], files_css[], files_model[], files_graph[], files_page[];

#endif
