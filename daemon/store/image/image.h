/* An image: the state of one moment, read in pieces while the state changes. Before a page changes it is copied,
 * unless it was read already. All other pages are read in place. So no writer waits for a slow reader, and the
 * copies are at most as large as the state.
 *
 * The pieces together are the files of a state that was closed, and a manifest with a checksum of every MiB of
 * them, which store_open verifies and removes. The journal comes last: without it the other files are no state. */
#ifndef STORE_IMAGE_H
#define STORE_IMAGE_H

#include "daemon/store/store.h"

enum { STORE_PIECE_BYTES = 1 << 20 };

/* Begins an image of this moment; nothing writes local memory meanwhile. 0; -EBUSY: the last one has not ended;
 * -ENOMEM. */
int store_image_begin(struct store *store);

/* Bytes [off, off + bytes) of local memory are about to change. No effect without an image. On any thread; after
 * it returns they may change. */
void store_image_before(struct store *store, uint64_t off, uint64_t bytes);

struct store_piece {
	const char *file; /* its short name */
	uint64_t file_bytes, off;
	const uint8_t *data; /* the store's, until the next piece; bytes of no piece are zero */
	size_t bytes;	     /* STORE_PIECE_BYTES at most; may be 0 */
	bool is_last;
};
/* The next piece of an image that has not ended. Each file has at least one. */
void store_image_next(struct store *store, struct store_piece *piece);
/* Whether the next piece takes about a millisecond, and may be made on any thread. Else the store's own thread
 * makes it. */
bool store_image_is_long(const struct store *store);

/* Host memory of the image, about; 0 without one. */
uint64_t store_image_held(const struct store *store);
/* Ends the image, if there is one. Not while a piece is being made. */
void store_image_end(struct store *store);
/* Frees the memory of an image that has ended: a millisecond for some 10 MiB, or nothing if all pieces were read.
 * On any thread, but not while another image begins; that one frees it otherwise. */
void store_image_give_back(struct store *store);

#endif
