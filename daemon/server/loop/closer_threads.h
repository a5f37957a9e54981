/* The threads of the closer: what may sleep, and what is done about it. */
#ifndef SERVER_CLOSER_THREADS_H
#define SERVER_CLOSER_THREADS_H

#include "daemon/server/loop/closer.h"

/* One thread more. 0 or -errno. */
int closer_threads_start(struct closer *closer);
/* A thread takes from the queue, if there is something in it. The lock is held. */
void closer_threads_add_ready(struct closer *closer, struct closer_queue *queue);
/* Ends lingers, notes users whose close does not return, and makes another thread where all are slow. */
void closer_threads_tick(struct closer *closer);
/* With is_closing: whether all threads end, which is waited for 200 ms. The lock is held. */
bool closer_threads_wait(struct closer *closer);

#endif
