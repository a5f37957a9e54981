/* Looking again for a moment before sleeping: what another core sends comes sooner than a sleeper wakes up.
 *
 * Whether it pays is learned from what comes of it, on either side of the socket alike: the mean time from one
 * wait to the next, of waits that were looked through and of those that were slept through. Both ends must look
 * for much to be won, so all processes of the machine try it at the same time: in the first half millisecond of
 * each 64 all look, in the second all sleep, and for the rest each does what was quicker. */
#ifndef PROTO_SPIN_H
#define PROTO_SPIN_H

#include <stdbool.h>
#include <stdint.h>

struct spin {
	uint64_t most_ns;     /* to look; 0: never */
	uint64_t mean_ns[2];  /* from wait to wait: slept, looked */
	uint64_t previous_ns; /* when the one before began; 0: there was none */
	bool looks;	      /* in that */
};

void spin_init(struct spin *spin, uint64_t most_ns);

/* A wait begins, by CLOCK_MONOTONIC: whether to look for up to most_ns, or to sleep at once. */
bool spin_begin(struct spin *spin, uint64_t now_ns);

/* Asks came(ctx) again and again, if that is to be done: whether it said yes. */
bool spin_look(struct spin *spin, bool (*came)(void *ctx), void *ctx);

#endif
