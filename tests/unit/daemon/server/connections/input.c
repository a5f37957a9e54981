/* Frames in every piece, and long messages among them. */
#include "daemon/server/connections/input.h"

#include <stdlib.h>
#include <string.h>

#include "proto/frame.h"
#include "tests/support/test.h"

enum { ONE_READ = 64 << 10 };

struct stream {
	uint8_t *bytes;
	size_t used, at;
};

/* Message i is full of i + 1. */
static void append(struct stream *stream, size_t bytes, unsigned i)
{
	size_t header = frame_header(bytes, stream->bytes + stream->used);
	memset(stream->bytes + stream->used + header, (int)i + 1, bytes);
	stream->used += header + bytes;
}

static void check(const uint8_t *bytes, size_t n, const size_t *lengths, unsigned *i)
{
	ck_assert_uint_eq(n, lengths[*i]);
	for (size_t k = 0; k < n; k++)
		if (bytes[k] != *i + 1)
			ck_abort_msg("message %u differs at %zu", *i, k);
	++*i;
}

/* What receive.c does with n bytes behind what is kept. */
static void take(struct input *input, const uint8_t *bytes, size_t n, const size_t *lengths, unsigned *i)
{
	static uint8_t all[INPUT_PART_BYTES + ONE_READ];
	size_t used = input->used, done = 0, header, message;
	ck_assert_uint_le(used, INPUT_PART_BYTES);
	if (used)
		memcpy(all, input->bytes + input->begin, used);
	memcpy(all + used, bytes, n);
	used += n;
	input_deinit(input);
	while (frame_parse(all + done, used - done, FRAME_BYTES_MAX, &header, &message) == FRAME_COMPLETE) {
		check(all + done + header, message, lengths, i);
		done += header + message;
	}
	message = input_long(all + done, used - done, &header);
	if (message)
		ck_assert_int_eq(input_begin_body(input, message, all + done + header, used - done - header), 0);
	else if (used > done)
		ck_assert_int_eq(input_keep(input, all + done, used - done), 0);
}

static void take_body(struct input *input, const size_t *lengths, unsigned *i)
{
	size_t message;
	uint8_t *body = input_take_body(input, &message);
	if (!body)
		return;
	ck_assert_uint_gt(message, INPUT_SHORT_BYTES);
	check(body, message, lengths, i);
	free(body);
}

TEST(messages_come_out_as_they_went_in, .to = 2)
{
	enum { MESSAGES = 30 };
	size_t lengths[MESSAGES];
	struct stream stream = {.bytes = malloc(32 << 20)};
	struct input input;
	unsigned next = 0;
	srand((unsigned)_i);
	for (unsigned i = 0; i < MESSAGES; i++) {
		lengths[i] = rand() % 3 ? (size_t)rand() % 100000 : (size_t)rand() % 2000000;
		append(&stream, lengths[i], i);
	}
	input_init(&input, &heap_libc);
	while (stream.at < stream.used) {
		size_t left = stream.used - stream.at, room = ONE_READ, n;
		uint8_t *to = input.body ? input_room(&input, &room) : NULL;
		n = rand() % 3 ? (size_t)rand() % ONE_READ + 1 : (size_t)rand() % 20 + 1;
		n = n < left ? n : left;
		n = n < room ? n : room;
		ck_assert_uint_gt(n, 0);
		if (to) {
			memcpy(to, stream.bytes + stream.at, n);
			input_add(&input, n);
			take_body(&input, lengths, &next);
		} else {
			take(&input, stream.bytes + stream.at, n, lengths, &next);
		}
		stream.at += n;
	}
	ck_assert_uint_eq(next, MESSAGES);
	ck_assert(input_is_empty(&input));
	input_deinit(&input);
	free(stream.bytes);
}

TEST(room_follows_what_has_come)
{
	uint8_t head[INPUT_HEAD_BYTES] = {9};
	struct input input;
	size_t room = 0;
	uint8_t *to;
	input_init(&input, &heap_libc);
	ck_assert_int_eq(input_begin_body(&input, FRAME_BYTES_MAX, head, sizeof(head)), 0);
	while (input.used < input.body) {
		size_t before = input.room, growth = input_growth(&input);
		ck_assert_uint_le(input.room, (64 << 10) + 16 * input.used);
		to = input_room(&input, &room);
		ck_assert_ptr_nonnull(to);
		ck_assert_uint_gt(room, 0);
		ck_assert_uint_eq(input.room, before + growth);
		ck_assert_uint_le(input.room, FRAME_BYTES_MAX);
		memset(to, 7, room);
		input_add(&input, room);
	}
	to = input_take_body(&input, &room);
	ck_assert_ptr_nonnull(to);
	ck_assert_uint_eq(room, FRAME_BYTES_MAX);
	ck_assert_uint_eq(to[0], 9);
	ck_assert_uint_eq(to[room - 1], 7);
	free(to);
	ck_assert_ptr_null(input.bytes);
}

TEST(a_long_message_is_told_by_its_head)
{
	uint8_t frame[FRAME_HEADER_BYTES_MAX + INPUT_HEAD_BYTES] = {0};
	size_t n = frame_header(INPUT_SHORT_BYTES + 1, frame), header;
	for (size_t i = 0; i < n + INPUT_HEAD_BYTES; i++)
		ck_assert_uint_eq(input_long(frame, i, &header), 0);
	ck_assert_uint_eq(input_long(frame, n + INPUT_HEAD_BYTES, &header), INPUT_SHORT_BYTES + 1);
	ck_assert_uint_eq(header, n);
	frame_header(INPUT_SHORT_BYTES, frame);
	ck_assert_uint_eq(input_long(frame, n + INPUT_HEAD_BYTES, &header), 0);
	frame_header(FRAME_BYTES_MAX + 1, frame);
	ck_assert_uint_eq(input_long(frame, sizeof(frame), &header), 0);
}

TEST(what_is_skipped_is_the_rest)
{
	uint8_t head[INPUT_HEAD_BYTES] = {0};
	struct input input;
	input_init(&input, &heap_libc);
	ck_assert_int_eq(input_begin_body(&input, 100000, head, sizeof(head)), 0);
	input_skip_body(&input);
	ck_assert_uint_eq(input.skip, 100000 - sizeof(head));
	ck_assert_uint_eq(input.room, 0);
	ck_assert(!input_is_empty(&input));
	input_deinit(&input);
}
