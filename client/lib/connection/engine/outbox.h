/* What is to be written, in order: bytes of one's own, stretches of others' memory that are written from where
 * they lie, and fds that go with the first byte behind them. */
#ifndef CLIENT_LIB_OUTBOX_H
#define CLIENT_LIB_OUTBOX_H

#include <stdbool.h>

#include "client/lib/messages/buffer.h"

struct outbox {
	struct buffer bytes;
	uint64_t consumed; /* of own bytes, ever */
	struct outbox_piece *pieces;
	unsigned first, n_pieces, room;
};

/* Each: 0 or -ENOMEM, and nothing changed. */
int outbox_reserve(struct outbox *outbox, const struct memory *memory, size_t bytes, unsigned n_pieces);
/* Within what was reserved. The memory stays as it is until it is written, or outbox_disown. */
void outbox_borrow(struct outbox *outbox, const void *data, size_t bytes, const void *owner);
/* Takes over the fd. */
void outbox_fd(struct outbox *outbox, int fd);

bool outbox_is_empty(const struct outbox *outbox);
/* Writes what the socket takes without waiting. 0, or -errno where it takes no more, ever. */
int outbox_write(struct outbox *outbox, const struct memory *memory, int fd);

/* What is left to write of this owner's memory is copied, so that it may go. 0; -ENOMEM: it cannot be, and the
 * rest must not be written. */
int outbox_disown(struct outbox *outbox, const struct memory *memory, const void *owner);
void outbox_deinit(struct outbox *outbox, const struct memory *memory);

#endif
