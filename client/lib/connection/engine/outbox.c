/* A queue of own bytes with pieces between them. Invariant: pieces are in the order of `at`, the number of own
 * bytes that go before them; consumed <= at <= consumed + own bytes. */
#define _GNU_SOURCE /* SCM_RIGHTS' macros, struct msghdr */
#include "client/lib/connection/engine/engine.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OUTBOX_IOVECS = 16, OUTBOX_PIECES_LEAST = 8 };

struct outbox_piece {
	uint64_t at;
	const uint8_t *data;
	size_t bytes;
	const void *owner;
	uint8_t *copy; /* the data, where it has no owner any more */
	int fd;	       /* or -1 */
};

static int reserve_pieces(struct outbox *outbox, const struct memory *memory, unsigned n)
{
	if (n <= outbox->room - outbox->n_pieces - outbox->first)
		return 0;
	unsigned room = outbox->n_pieces + n + OUTBOX_PIECES_LEAST + outbox->n_pieces / 2;
	struct outbox_piece *pieces = memory_array(memory, room, sizeof(*pieces));
	if (!pieces)
		return -ENOMEM;
	if (outbox->n_pieces)
		memcpy(pieces, outbox->pieces + outbox->first, outbox->n_pieces * sizeof(*pieces));
	memory_free(memory, outbox->pieces);
	outbox->pieces = pieces;
	outbox->first = 0;
	outbox->room = room;
	return 0;
}

int outbox_reserve(struct outbox *outbox, const struct memory *memory, size_t bytes, unsigned n_pieces)
{
	if (n_pieces && reserve_pieces(outbox, memory, n_pieces))
		return -ENOMEM;
	return buffer_reserve(&outbox->bytes, memory, bytes);
}

static void add_piece(struct outbox *outbox, const struct outbox_piece *piece)
{
	struct outbox_piece *to = &outbox->pieces[outbox->first + outbox->n_pieces++];
	*to = *piece;
	to->at = outbox->consumed + buffer_used(&outbox->bytes);
}

void outbox_borrow(struct outbox *outbox, const void *data, size_t bytes, const void *owner)
{
	add_piece(outbox, &(struct outbox_piece){.data = data, .bytes = bytes, .owner = owner, .fd = -1});
}

void outbox_fd(struct outbox *outbox, int fd)
{
	add_piece(outbox, &(struct outbox_piece){.fd = fd});
}

bool outbox_is_empty(const struct outbox *outbox)
{
	return !outbox->n_pieces && !buffer_used(&outbox->bytes);
}

static void drop_first(struct outbox *outbox, const struct memory *memory)
{
	struct outbox_piece *piece = &outbox->pieces[outbox->first];
	if (piece->fd >= 0)
		close(piece->fd);
	memory_free(memory, piece->copy);
	outbox->first++;
	if (!--outbox->n_pieces)
		outbox->first = 0;
}

/* What one call writes: up to the next fd, which must come with the first byte behind it. Returns how many. */
static int gather(const struct outbox *outbox, struct iovec *iovecs)
{
	const uint8_t *bytes = outbox->bytes.bytes + outbox->bytes.begin;
	uint64_t at = outbox->consumed, end = at + buffer_used(&outbox->bytes);
	int n = 0;
	for (unsigned i = 0; n < OUTBOX_IOVECS - 1; i++) {
		const struct outbox_piece *piece =
			i < outbox->n_pieces ? &outbox->pieces[outbox->first + i] : NULL;
		uint64_t until = piece ? piece->at : end;
		if (until > at)
			iovecs[n++] = (struct iovec){(uint8_t *)(uintptr_t)bytes + (at - outbox->consumed),
						     (size_t)(until - at)};
		at = until;
		if (!piece || (piece->fd >= 0 && n))
			break;
		if (piece->bytes)
			iovecs[n++] = (struct iovec){(uint8_t *)(uintptr_t)piece->data, piece->bytes};
	}
	return n;
}

static void consume(struct outbox *outbox, size_t n, const struct memory *memory)
{
	while (n) {
		struct outbox_piece *piece = outbox->n_pieces ? &outbox->pieces[outbox->first] : NULL;
		size_t own = piece ? (size_t)(piece->at - outbox->consumed) : buffer_used(&outbox->bytes);
		size_t gone = own < n ? own : n;
		if (gone)
			buffer_consume(&outbox->bytes, gone);
		outbox->consumed += gone;
		n -= gone;
		/* What ends right before an fd has not taken it along. */
		if (!piece || gone < own || !n)
			continue;
		gone = piece->bytes < n ? piece->bytes : n;
		piece->data += gone;
		piece->bytes -= gone;
		n -= gone;
		if (!piece->bytes)
			drop_first(outbox, memory);
	}
}

static ssize_t write_some(struct outbox *outbox, int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.bytes = {0}};
	struct iovec iovecs[OUTBOX_IOVECS];
	struct outbox_piece *piece = outbox->n_pieces ? &outbox->pieces[outbox->first] : NULL;
	struct msghdr message = {.msg_iov = iovecs};
	message.msg_iovlen = (size_t)gather(outbox, iovecs);
	if (piece && piece->fd >= 0 && piece->at == outbox->consumed) {
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &piece->fd, sizeof(int));
	}
	return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int outbox_write(struct outbox *outbox, const struct memory *memory, int fd)
{
	while (!outbox_is_empty(outbox)) {
		ssize_t n = write_some(outbox, fd);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return 0;
		if (n < 0)
			return -errno;
		consume(outbox, (size_t)n, memory);
	}
	return 0;
}

int outbox_disown(struct outbox *outbox, const struct memory *memory, const void *owner)
{
	for (unsigned i = 0; i < outbox->n_pieces; i++) {
		struct outbox_piece *piece = &outbox->pieces[outbox->first + i];
		if (piece->owner != owner || !owner)
			continue;
		piece->copy = memory_alloc(memory, piece->bytes);
		if (!piece->copy)
			return -ENOMEM;
		piece->data = memcpy(piece->copy, piece->data, piece->bytes);
		piece->owner = NULL;
	}
	return 0;
}

void outbox_deinit(struct outbox *outbox, const struct memory *memory)
{
	while (outbox->n_pieces)
		drop_first(outbox, memory);
	memory_free(memory, outbox->pieces);
	buffer_deinit(&outbox->bytes, memory);
	*outbox = (struct outbox){.consumed = 0};
}
