/* The loop, waiting by asking again for a while before it sleeps: a request that comes within some microseconds is
 * then taken up without a wake-up, at the price of a processor that is kept busy. */
#ifndef SERVER_SPIN_H
#define SERVER_SPIN_H

#include "daemon/server/loop/turns.h"

/* Runs the loop until nothing keeps it alive. `us` 0: it always sleeps at once. With less than two processors,
 * beside others that want this one, and where nothing came the last times, it sleeps too. */
void spin_run(uv_loop_t *loop, struct turns *turns, unsigned us);

#endif
