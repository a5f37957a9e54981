/* Room grows with what has come, not with what was announced, and ends where the frame ends. */
#include "daemon/server/input.h"

#include <errno.h>
#include <string.h>

#include "proto/frame.h"

enum {
	LEAST_BYTES = 64 << 10,
	/* So that all growing copies little of a long message, and a client that only announces one gets little.
	 */
	BODY_GROWTH = 16,
};

void input_init(struct input *input, const struct heap *heap)
{
	*input = (struct input){.heap = heap};
}

void input_deinit(struct input *input)
{
	heap_free(input->heap, input->bytes);
	input_init(input, input->heap);
}

int input_keep(struct input *input, const uint8_t *bytes, size_t n)
{
	size_t room = n > LEAST_BYTES ? n : LEAST_BYTES;

	input->bytes = heap_alloc(input->heap, room);
	if (!input->bytes)
		return -ENOMEM;
	memcpy(input->bytes, bytes, n);
	input->begin = 0;
	input->used = n;
	input->room = room;
	return 0;
}

/* Into new memory, without the first `skip` bytes. */
static bool move(struct input *input, size_t skip, size_t room)
{
	uint8_t *grown = heap_alloc(input->heap, room);

	if (!grown)
		return false;
	memcpy(grown, input->bytes + input->begin + skip, input->used - skip);
	heap_free(input->heap, input->bytes);
	input->bytes = grown;
	input->begin = 0;
	input->used -= skip;
	input->room = room;
	return true;
}

static size_t body_room(size_t body, size_t used)
{
	size_t share = body / BODY_GROWTH;

	if (used > share)
		return body;
	return used < share / BODY_GROWTH ? BODY_GROWTH * used : share + 1;
}

static bool grow(struct input *input)
{
	size_t header, message;

	if (input->body)
		return move(input, 0, body_room(input->body, input->used));
	if (frame_parse(input->bytes + input->begin, input->used, FRAME_BYTES_MAX, &header, &message) ==
		    FRAME_MORE &&
	    header && message > INPUT_LONG_BYTES && input->used > header) {
		input->body = message;
		return move(input, header, body_room(message, input->used - header));
	}
	if (input->begin) {
		memmove(input->bytes, input->bytes + input->begin, input->used);
		input->begin = 0;
	}
	return input->used < input->room || move(input, 0, 2 * input->room);
}

uint8_t *input_room(struct input *input, size_t *room)
{
	if (input->begin + input->used == input->room && !grow(input))
		return NULL;
	*room = input->room - input->begin - input->used;
	return input->bytes + input->begin + input->used;
}

void input_add(struct input *input, size_t n)
{
	input->used += n;
}

void input_drop(struct input *input, size_t n)
{
	input->begin += n;
	input->used -= n;
	if (!input->used)
		input_deinit(input);
}

uint8_t *input_take_long(struct input *input, size_t *bytes)
{
	uint8_t *message = input->bytes;

	if (!input->body || input->used < input->body)
		return NULL;
	*bytes = input->body;
	input_init(input, input->heap);
	return message;
}
