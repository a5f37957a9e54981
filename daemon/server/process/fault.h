/* Shared memory of clients that faults in spite of all that is checked before it is mapped: a SIGBUS, because a
 * client took pages away (holes.h), or a page of the machine broke. The access is left where it was; nothing is
 * put in the place of the memory, as that would be the daemon's own and in nobody's account. */
#ifndef SERVER_FAULT_H
#define SERVER_FAULT_H

#include <stdbool.h>
#include <stddef.h>

/* Handles SIGBUS from now on; one outside fault_guard, or at another address, ends the process as before. */
void fault_open(void);

/* Has say(ctx, address) called before a fault ends the process. It may call only what a handler of signals may. NULL: it
 * ends without a word. */
void fault_say(void (*say)(void *ctx, const void *address), void *ctx);

/* Calls access(arg) and returns true. Where it touches a byte of [base, base + bytes) that cannot be had, it is
 * left in the midst and false returned: between this call and such an access it must hold neither locks nor
 * memory. Not nested; on any thread. */
bool fault_guard(const void *base, size_t bytes, void (*access)(void *arg), void *arg);

#endif
