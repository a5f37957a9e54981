/* A turn of the loop. Before the loop waits for input it runs work of the users, from a fair queue, for as long as a
 * turn may take; then what a turn ends with is run once for each: a connection's replies go out together, however
 * many requests were answered. */
#ifndef SERVER_TURNS_H
#define SERVER_TURNS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/service/fair_queue.h"

/* Something to be run once when the turn ends. */
struct turns_entry {
	void (*run)(struct turns_entry *entry);
	struct turns_entry *next, *prev; /* NULL: it is not to be run */
};

struct turns {
	uv_prepare_t prepare;
	uv_idle_t more; /* runs while work is left for another turn */
	struct fair_queue *queue;
	void (*settle)(void *ctx); /* after work of the queue was run; NULL: nothing */
	void *ctx;
	struct turns_entry last; /* the head of a ring */
	uint64_t most_ns;	 /* that a turn runs work of the queue */
	uint64_t woken_ns;   /* when the turn began; 0: it has not */
	uint64_t latest_ns;  /* when the one began that has just ended; 0: there was nothing to do */
	uint64_t spun_ns;    /* that passed awake between turns, since somebody set it to 0 */
};

/* Runs the work of `queue`, whose `wake` it sets. Keeps a loop alive only while there is work. */
void turns_open(struct turns *turns, uv_loop_t *loop, struct fair_queue *queue);
/* Nothing is left to be run. The loop must run once more before the struct may go. */
void turns_close(struct turns *turns);

/* The turn begins here: for work that is not queued. */
static inline void turns_wake(struct turns *turns)
{
	if (!turns->woken_ns)
		turns->woken_ns = uv_hrtime();
}

/* To be run once, when the turn ends. */
void turns_add_last(struct turns *turns, struct turns_entry *entry);
/* Nothing where it is not to be run. */
void turns_remove(struct turns_entry *entry);

#endif
