/* Maps the memory of clients, unmaps it, and measures for how long the kernel let both wait.
 *
 * The kernel has one lock for all mappings of a file. A client that maps its memfd in a million places, and makes
 * holes in it, holds this lock for half a second at a time. mmap and munmap wait for it, and hold meanwhile the
 * lock of all mappings of this process, for which every thread waits that needs memory. That cannot be helped; but
 * the client's user pays for it (service/order/stops.h): for the time that the call slept, as an unmap that frees
 * the last pages of a file may take long by itself. So that each wait is charged to the right user, one call runs
 * at a time. */
#ifndef SERVER_MAPPINGS_H
#define SERVER_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>

struct stops_price;

/* A mapping of the file's first `bytes`; NULL: errno says why; EAGAIN: the user still pays for an earlier one. On
 * any thread. */
void *mappings_add(int fd, uint64_t bytes, bool writable, const struct stops_price *price);

/* Returns the price, as stops_charge takes it; 0 where it did not sleep for long. On any thread. */
uint64_t mappings_remove(void *base, uint64_t bytes);

#endif
