/* Room grows with the bytes that have come, not with the announced length, up to the length of the message. */
#include "daemon/server/connections/input.h"

#include <errno.h>
#include <string.h>

enum {
	/* So that a long message is copied little in all, and a client that only announces one gets little
	 * memory. */
	BODY_GROWTH = 16,
	WHOLE_BYTES_MAX = 2 << 20, /* a message up to this gets all its room at once */
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
	input->bytes = heap_alloc(input->heap, n);
	if (!input->bytes)
		return -ENOMEM;
	memcpy(input->bytes, bytes, n);
	input->begin = 0;
	input->used = input->room = n;
	return 0;
}

void input_drop(struct input *input, size_t n)
{
	input->begin += n;
	input->used -= n;
	if (!input->used)
		input_deinit(input);
}

size_t input_long(const uint8_t *bytes, size_t n, size_t *header)
{
	size_t message;

	if (frame_parse(bytes, n, FRAME_BYTES_MAX, header, &message) == FRAME_MORE &&
	    message > INPUT_SHORT_BYTES && n >= *header + INPUT_HEAD_BYTES)
		return message;
	return 0;
}

size_t input_body_room(size_t body, size_t used)
{
	size_t share = body / BODY_GROWTH;

	if (used > share || body <= WHOLE_BYTES_MAX)
		return body;
	return used < share / BODY_GROWTH ? BODY_GROWTH * used : share + 1;
}

/* Moves the bytes into new memory of that size. */
static int move(struct input *input, size_t room)
{
	uint8_t *grown = heap_alloc(input->heap, room);

	if (!grown)
		return -ENOMEM;
	memcpy(grown, input->bytes, input->used);
	heap_free(input->heap, input->bytes);
	input->bytes = grown;
	input->room = room;
	return 0;
}

int input_begin_body(struct input *input, size_t body, const uint8_t *bytes, size_t n)
{
	size_t room = input_body_room(body, n);

	input->bytes = heap_alloc(input->heap, room);
	if (!input->bytes)
		return -ENOMEM;
	memcpy(input->bytes, bytes, n);
	input->used = n;
	input->room = room;
	input->body = body;
	return 0;
}

size_t input_growth(const struct input *input)
{
	return input->used < input->room ? 0 : input_body_room(input->body, input->used) - input->room;
}

uint8_t *input_room(struct input *input, size_t *room)
{
	if (input->used == input->room && move(input, input_body_room(input->body, input->used)))
		return NULL;
	*room = input->room - input->used;
	return input->bytes + input->used;
}

void input_add(struct input *input, size_t n)
{
	input->used += n;
}

uint8_t *input_take_body(struct input *input, size_t *bytes)
{
	uint8_t *message = input->bytes;

	if (input->used < input->body)
		return NULL;
	*bytes = input->body;
	input_init(input, input->heap);
	return message;
}

void input_skip_body(struct input *input)
{
	size_t skip = input->body - input->used;

	input_deinit(input);
	input->skip = skip;
}
