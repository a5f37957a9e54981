/* What a client sends, again and again, and how fast the answers come: frames packed beforehand, written at once,
 * and as many replies read as frames went out. The same code for all peers, so that only these differ. */
#ifndef BENCH_RPC_LOAD_H
#define BENCH_RPC_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/spin.h"
#include "tests/bench/support/peer.h"

enum { LOAD_BATCHES_MAX = 2 };

/* Delimited frames, one behind the other. */
struct batch {
	uint8_t *bytes;
	size_t n_bytes;
	unsigned n_frames;
};

struct load {
	struct batch batches[LOAD_BATCHES_MAX]; /* by turns: all replies of one, then the next */
	unsigned n_batches;
	unsigned counts;    /* as so many requests of a round of all batches */
	size_t handle_off;  /* > 0: the frames of batch 1 are of one size, and each has there the handle that a
			     * reply to batch 0 told */
	size_t reply_bytes; /* > 0: a reply is so many bytes of any content, not a frame */
	struct spin spin;   /* looks for a reply before it sleeps; zero: never */
};

struct sample {
	double us, cpu_us; /* of one request; of the peer's processor time */
};

/* Appends a frame; makes a batch like another. */
void load_add(struct batch *batch, const uint8_t *message, size_t n_bytes);
void load_copy(const struct batch *from, struct batch *to);
void load_free(struct load *load);

/* Runs `load` over `fd` for about so long, at least once. A reply that tells a failure ends the bench. */
void load_run(struct load *load, int fd, const struct peer *peer, double seconds, struct sample *sample);
/* The same n times, unmeasured. */
void load_repeat(struct load *load, int fd, unsigned n);

/* Writes frames, and reads nothing. */
void load_send(int fd, const struct batch *batch);
/* Writes one frame and reads one reply; its message, of n_bytes, to be freed. */
uint8_t *load_ask(int fd, const struct batch *frame, size_t *n_bytes);

#endif
