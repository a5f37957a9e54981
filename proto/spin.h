/* Looking again for a moment before sleeping: what another core sends comes sooner than a sleeper wakes up.
 * Whether it pays is learned, on either side of the socket; where it does not it is left off for a while. */
#ifndef PROTO_SPIN_H
#define PROTO_SPIN_H

#include <stdbool.h>
#include <stdint.h>

struct spin {
	uint64_t most_ns;    /* to look; 0: never */
	int credit;	     /* what is left of what paid before */
	unsigned rests;	     /* waits that are to be slept through */
	unsigned next_rests; /* when the credit is used up again */
};

void spin_init(struct spin *spin, uint64_t most_ns);

/* Asks came(ctx) again and again, giving the core away in between: whether it said yes. False also where it did
 * not look. */
bool spin_look(struct spin *spin, bool (*came)(void *ctx), void *ctx);

/* What spin_look is made of. Whether to look this time; and what came of it, the longest that the core was away
 * included. */
bool spin_begin(struct spin *spin);
void spin_end(struct spin *spin, bool came, uint64_t away_ns);

#endif
