/* Received bytes that are not handled yet: waiting frames, a part of a short frame, or a part of a long message. A
 * long message has memory of its own, which rpc takes over, or it is skipped. */
#ifndef SERVER_INPUT_H
#define SERVER_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/device/memory/heap.h"
#include "proto/frame.h"

enum {
	INPUT_SHORT_BYTES = 16 << 10, /* longer messages are received into memory of their own */
	/* Of a part of a frame that is kept as it is: it has the length and the id of a long message. */
	INPUT_PART_BYTES = INPUT_SHORT_BYTES + FRAME_HEADER_BYTES_MAX,
	INPUT_HEAD_BYTES = 16, /* of a message, with its id */
};

struct input {
	const struct heap *heap;
	uint8_t *bytes;
	size_t begin, used, room; /* used: from begin on */
	size_t body;		  /* length of the long message; 0: these are frames */
	size_t skip;		  /* bytes to come that are dropped */
};

void input_init(struct input *input, const struct heap *heap);
void input_deinit(struct input *input);

/* True between frames. */
static inline bool input_is_empty(const struct input *input)
{
	return !input->used && !input->skip;
}

/* Keeps n > 0 bytes; there must be none yet. 0 or -ENOMEM. */
int input_keep(struct input *input, const uint8_t *bytes, size_t n);
/* Drops n bytes from the front. */
void input_drop(struct input *input, size_t n);

/* The length of the long message that begins here, behind `header` bytes; 0: it is short, or the length is not
 * known yet. */
size_t input_long(const uint8_t *bytes, size_t n, size_t *header);
/* The memory of a long message of which so much has come. */
size_t input_body_room(size_t body, size_t used);
/* Begins a long message of `body` bytes with the first n, where nothing is kept. 0 or -ENOMEM. */
int input_begin_body(struct input *input, size_t body, const uint8_t *bytes, size_t n);
/* How much more memory the next byte of a long message takes. */
size_t input_growth(const struct input *input);
/* The place of that byte, and the room there; NULL: no memory. */
uint8_t *input_room(struct input *input, size_t *room);
/* n bytes were put there. */
void input_add(struct input *input, size_t n);
/* Takes the complete long message, which the caller frees; NULL: it is not complete. */
uint8_t *input_take_body(struct input *input, size_t *bytes);
/* Drops the part of a long message that has come, and skips the rest. */
void input_skip_body(struct input *input);

#endif
