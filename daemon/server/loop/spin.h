/* Runs the loop, which polls for a while before it sleeps: a request that comes within some microseconds is then
 * handled without a wake-up, at the price of a busy processor. */
#ifndef SERVER_SPIN_H
#define SERVER_SPIN_H

#include "daemon/server/loop/turns.h"

/* Runs the loop until nothing keeps it alive. `us` 0: it always sleeps at once. It also sleeps at once with less
 * than two processors, if other threads want this one, and after vain polls. */
void spin_run(uv_loop_t *loop, struct turns *turns, unsigned us);

#endif
