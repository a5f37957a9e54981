/* A turn of the loop. Before the loop waits for input it runs work of the users, from a fair queue, for as long as
 * a turn may take. Then each entry for the end of the turn is run once: a connection's replies are sent together,
 * however many requests were answered. */
#ifndef SERVER_TURNS_H
#define SERVER_TURNS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/service/order/fair_queue.h"

/* Something to be run once when the turn ends. */
struct turns_entry {
	void (*run)(struct turns_entry *entry);
	struct turns_entry *next, *prev; /* NULL: not queued */
};

struct turns {
	uv_prepare_t prepare;
	uv_idle_t more; /* runs while work is left for another turn */
	struct fair_queue *queue;
	void (*settle)(void *ctx); /* after work of the queue was run; NULL: nothing */
	void *ctx;
	struct turns_entry last; /* the head of a ring */
	uint64_t most_ns;	 /* for which a turn runs work of the queue */
	uint64_t woken_ns;	 /* when the turn began; 0: not yet */
	uint64_t latest_ns;	 /* when the last turn began; 0: it had nothing to do */
	uint64_t spun_ns;	 /* time awake between turns, since it was last set to 0 */
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

/* Has the entry run once, when the turn ends. */
void turns_add_last(struct turns *turns, struct turns_entry *entry);
/* No effect if it is not queued. */
void turns_remove(struct turns_entry *entry);

#endif
