/* What came in and is not handled yet: frames that have to wait, the part of a short one, or a long message on its
 * way, which has memory of its own that can be handed on, or is being thrown away. */
#ifndef SERVER_INPUT_H
#define SERVER_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/device/memory/heap.h"
#include "proto/frame.h"

enum {
	INPUT_SHORT_BYTES = 16 << 10, /* longer messages are received into memory of their own */
	/* Of a part that is kept as it is: enough of a long message has come to tell its length and its id. */
	INPUT_PART_BYTES = INPUT_SHORT_BYTES + FRAME_HEADER_BYTES_MAX,
	INPUT_HEAD_BYTES = 16, /* of a message, with its id */
};

struct input {
	const struct heap *heap;
	uint8_t *bytes;
	size_t begin, used, room; /* used: from begin on */
	size_t body;		  /* of the long message that this is; 0: these are frames */
	size_t skip;		  /* bytes to come that are for nobody */
};

void input_init(struct input *input, const struct heap *heap);
void input_deinit(struct input *input);

/* True between frames. */
static inline bool input_is_empty(const struct input *input)
{
	return !input->used && !input->skip;
}

/* Keeps n > 0 bytes, where there are none. 0 or -ENOMEM. */
int input_keep(struct input *input, const uint8_t *bytes, size_t n);
/* n bytes from the front are done with. */
void input_drop(struct input *input, size_t n);

/* The length of the long message that begins here, behind `header` bytes; 0 where it is short, or where it cannot
 * be told yet. */
size_t input_long(const uint8_t *bytes, size_t n, size_t *header);
/* The memory that a long message takes when so much of it has come. */
size_t input_body_room(size_t body, size_t used);
/* Begins a long message of `body` bytes with the first n, where nothing is kept. 0 or -ENOMEM. */
int input_begin_body(struct input *input, size_t body, const uint8_t *bytes, size_t n);
/* How much more memory the next byte of a long message takes. */
size_t input_growth(const struct input *input);
/* Where that byte goes, with room for more than it; NULL without memory. */
uint8_t *input_room(struct input *input, size_t *room);
/* n bytes were put there. */
void input_add(struct input *input, size_t n);
/* The long message, when all of it is there, which is the caller's to free from then on; else NULL. */
uint8_t *input_take_body(struct input *input, size_t *bytes);
/* Forgets what has come of a long message, and what is to come of it. */
void input_skip_body(struct input *input);

#endif
