/* The state as it was at one moment, read in pieces while it goes on changing. A page that is about to change is
 * copied first, unless it was read already; other pages are read in place. So no writer waits for a slow reader,
 * and the copies are at most as large as the state.
 *
 * The pieces together are the files of a state that was closed, and a manifest with a checksum of every MiB of
 * them, which store_open verifies and removes. The journal comes last: without it the others are no state. */
#ifndef STORE_IMAGE_H
#define STORE_IMAGE_H

#include "daemon/store/store.h"

enum { STORE_PIECE_BYTES = 1 << 20 };

/* Now is the moment: nothing writes local memory while this is called. 0; -EBUSY: there is one that has not ended;
 * -ENOMEM. */
int store_image_begin(struct store *store);

/* Bytes [off, off + bytes) of local memory are about to change. Does nothing where there is no image. On any
 * thread; returns when they may. */
void store_image_before(struct store *store, uint64_t off, uint64_t bytes);

struct store_piece {
	const char *file; /* a name, of a few letters */
	uint64_t file_bytes, off;
	const uint8_t *data; /* the store's, until the next piece; what no piece has is zero */
	size_t bytes;	     /* STORE_PIECE_BYTES at most; may be 0 */
	bool is_last;
};
/* The next piece of an image that has not ended. Each file has at least one. */
void store_image_next(struct store *store, struct store_piece *piece);
/* Whether that takes about a millisecond: then it may be asked for on any thread. Else it is for the store's own.
 */
bool store_image_is_long(const struct store *store);

/* Host memory that it takes, about; 0 where there is none. */
uint64_t store_image_held(const struct store *store);
/* Nobody wants the rest; while no piece is being made. At any time otherwise, also where there is none. */
void store_image_end(struct store *store);
/* Gives back what an image held that has ended, which takes a millisecond for some 10 MiB; nothing to do where all
 * its pieces were told. On any thread, but not while another image begins, which does it otherwise. */
void store_image_give_back(struct store *store);

#endif
