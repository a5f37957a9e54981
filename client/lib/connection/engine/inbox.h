/* What has arrived: complete frames one by one, and the payload of a frame that has not arrived yet straight to
 * where it belongs. */
#ifndef CLIENT_LIB_INBOX_H
#define CLIENT_LIB_INBOX_H

#include <stdbool.h>
#include <sys/types.h>

#include "client/lib/messages/buffer.h"
#include "client/lib/messages/payload.h"
#include "proto/frame.h"

struct inbox {
	struct buffer bytes;
	size_t cut;    /* what the first frame lacks of its length: its payload, and that one's tag */
	bool is_known; /* that the first frame has no payload that is wanted elsewhere */
	uint8_t *to;   /* the rest of its payload, which is still to come; NULL: is dropped */
	size_t left;
	uint64_t owner; /* the request that `to` belongs to */
};

enum inbox_result {
	INBOX_COMPLETE,	 /* *message, *bytes: until inbox_consume */
	INBOX_MORE,	 /* there is room for what comes next */
	INBOX_PAYLOAD,	 /* *payload: to be answered with inbox_direct */
	INBOX_TOO_LARGE, /* as frame_parse */
	INBOX_BAD_LENGTH,
	INBOX_NO_MEMORY,
};

enum inbox_result inbox_next(struct inbox *inbox, const struct memory *memory, const uint8_t **message,
			     size_t *bytes, struct payload *payload);
/* The payload of the frame of the last inbox_next: goes to `to`, or (NULL) remains in its message. */
void inbox_direct(struct inbox *inbox, const struct payload *payload, uint8_t *to);
/* Drops the complete frame. */
void inbox_consume(struct inbox *inbox);
/* What still comes for a request does not go to where it belongs any more. */
void inbox_disown(struct inbox *inbox, uint64_t request);

/* Receives without waiting. Bytes; 0: the end; -errno. *is_all: the socket had no more. */
ssize_t inbox_receive(struct inbox *inbox, int fd, bool *is_all);
/* Something of a frame has arrived, and not all. */
bool inbox_is_within(const struct inbox *inbox);
void inbox_deinit(struct inbox *inbox, const struct memory *memory);

#endif
