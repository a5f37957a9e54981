/* What ran, from the entries of a record (npumem_replay_each, as a list): one operation a row, those of lists too.
 */
#ifndef CTL_CORE_REPORT_OPERATIONS_H
#define CTL_CORE_REPORT_OPERATIONS_H

#include <jansson.h>

/* Objects of: request (its number), index (in its list, -1: alone), session, uid, pid, queue ("dma", "kernel"),
 * name (write, conv2d …), tensors ([role, handle, writes, name]), came, start, end (ns; only where the daemon told
 * them), saturated, wrapped, macs, destroyed (bytes), warning; where it did not begin as it came and another is
 * seen to have ended meanwhile, waited_for (its row) and why: "tensor" (that both use, and one of the two writes),
 * "queue" (both are DMA, or kernels). */
json_t *operations_of(const json_t *entries);

#endif
