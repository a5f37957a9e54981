/* What else is needed of system memory than the public headers have. */
#ifndef CLIENT_LIB_SEGMENTS_H
#define CLIENT_LIB_SEGMENTS_H

#include <npumem/async.h>

/* As npumem_segment_create_async; not `writable`: the daemon can only read it. */
int segments_create_async(struct npumem *npumem, size_t bytes, bool writable, NPUMEM_ASYNC);

#endif
