/* What is left where shared memory faults in spite of all that is checked before it is mapped (SIGBUS: a broken
 * page of the machine, a kernel that keeps its promises otherwise): the mapping becomes zeros, and is known as
 * broken. */
#ifndef SERVER_FAULT_H
#define SERVER_FAULT_H

#include <stdbool.h>
#include <stddef.h>

enum { FAULT_RANGES_MAX = 4096 };

/* Handles SIGBUS from now on; one that is about no known range ends the process as before. */
void fault_open(void);

/* Makes a mapping known, in whole pages. False where there are FAULT_RANGES_MAX already. */
bool fault_add(void *base, size_t bytes);
/* Before it is unmapped; nothing uses it any more. */
void fault_remove(const void *base);
/* True where it is zeros since a fault. */
bool fault_is_broken(const void *base);

#endif
