/* What came in and is not handled yet: part of a frame, or all that a paused connection has to wait with. Of a
 * long message the body alone is kept, in memory of its own that can be handed on. */
#ifndef SERVER_INPUT_H
#define SERVER_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/device/memory/heap.h"

enum { INPUT_LONG_BYTES = 256 << 10 }; /* longer messages are long */

struct input {
	const struct heap *heap;
	uint8_t *bytes;
	size_t begin, used, room; /* used: from begin on */
	size_t body;		  /* of the long message that this is; 0: these are frames */
};

void input_init(struct input *input, const struct heap *heap);
void input_deinit(struct input *input);

/* Keeps n > 0 bytes, where there are none. 0 or -ENOMEM. */
int input_keep(struct input *input, const uint8_t *bytes, size_t n);
/* Room for more behind what there is, which is not nothing; NULL without memory. */
uint8_t *input_room(struct input *input, size_t *room);
/* n bytes were put there. */
void input_add(struct input *input, size_t n);
/* n bytes from the front are done with. */
void input_drop(struct input *input, size_t n);

/* The long message, when all of it is there, which is the caller's to free from then on; else NULL. */
uint8_t *input_take_long(struct input *input, size_t *bytes);

#endif
