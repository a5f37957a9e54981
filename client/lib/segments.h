/* What else is needed of system memory than client.h has. */
#ifndef CLIENT_LIB_SEGMENTS_H
#define CLIENT_LIB_SEGMENTS_H

#include <npumem/client.h>

/* As npumem_segment_create; not `writable`: the daemon can only read it. */
int segments_create(struct npumem *npumem, size_t bytes, bool writable, struct npumem_segment *segment,
		    struct npumem_error *error);

#endif
