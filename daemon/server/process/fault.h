/* Shared memory of clients can fault in spite of all checks before it is mapped: a SIGBUS, because a client took
 * pages away (holes.h), or a page of the machine broke. The access is left midway. No other memory is mapped in
 * its place, as that would be the daemon's own and charged to no user. */
#ifndef SERVER_FAULT_H
#define SERVER_FAULT_H

#include <stdbool.h>
#include <stddef.h>

/* Handles SIGBUS from now on; one outside fault_guard, or at another address, ends the process as before. */
void fault_open(void);

/* Has say(ctx, address) called before a fault ends the process. It may call only what a handler of signals may.
 * NULL: it ends without a message. */
void fault_say(void (*say)(void *ctx, const void *address), void *ctx);

/* Calls access(arg) and returns true. If it touches a byte of [base, base + bytes) that faults, it is left midway
 * and false is returned: before such an access it may take neither locks nor memory. Not nested; on any thread. */
bool fault_guard(const void *base, size_t bytes, void (*access)(void *arg), void *arg);

#endif
