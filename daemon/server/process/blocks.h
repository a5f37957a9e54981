/* The daemon's heap: malloc, with a list of the large blocks that were freed.
 *
 * To give a large block back to the kernel costs 0.1 ms for each MiB. The loop would pay it for each request and
 * reply of a client that hangs up. So a freed block is first kept for the next allocation of about its size, and
 * what is above KEPT_BYTES is given back by a thread. Blocks are freed by all threads. */
#ifndef SERVER_BLOCKS_H
#define SERVER_BLOCKS_H

#include "daemon/device/memory/heap.h"

enum { BLOCKS_LARGE_BYTES = 64 << 10 }; /* and more: malloc has a mapping for each such block */

/* malloc and free, until the thread has started and after it has ended. */
extern const struct heap blocks_heap;

/* Starts the thread. 0 or -errno. */
int blocks_open(void);
/* Ends the thread, and frees what is kept. */
void blocks_close(void);

#endif
