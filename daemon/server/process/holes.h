/* Keeps clients from filling the daemon's memory cgroup. The pages of a memfd are charged to the process that
 * touches them first, for as long as they exist. So where the daemon has such a limit (as a unit's MemoryMax
 * sets), a memfd must have all its pages when it is shared, and the daemon makes none: where a client takes pages
 * away later, an access of the daemon is a SIGBUS (userfaultfd(2), UFFD_FEATURE_SIGBUS), and the operation ends
 * there (fault.h). */
#ifndef SERVER_HOLES_H
#define SERVER_HOLES_H

#include <stdbool.h>

#include <npumem/types.h>

/* Before the first mapping. Does nothing, and later calls allow everything, where no memory cgroup of the daemon
 * has a limit and `always` is false. Where the kernel does not let the daemon do so, it logs a warning and goes
 * on: then a page that a client takes away later is made again, for the daemon. */
void holes_open(bool always);

/* Whether a memfd of that size has as many pages. 0; INVALID saying how many bytes are not there. Some may lie
 * behind its end: then holes remain, and an access to one faults. */
int holes_check(int fd, uint64_t bytes, struct npumem_error *error);

/* From now on no access makes a page of a mapping, until it is unmapped. The mapping is private, or shared and
 * writable. 0 or -errno. */
int holes_forbid(void *base, uint64_t bytes);

#endif
