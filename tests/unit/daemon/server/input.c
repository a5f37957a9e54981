/* Frames in every piece, and long messages among them. */
#include "daemon/server/input.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "proto/frame.h"

enum { ONE_READ = 256 << 10 };

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

static void handle(struct input *input, const size_t *lengths, unsigned *i)
{
	size_t header, message;
	uint8_t *body = input_take_long(input, &message);

	if (body) {
		ck_assert_uint_gt(message, INPUT_LONG_BYTES);
		check(body, message, lengths, i);
		free(body);
	}
	while (!input->body && input->used &&
	       frame_parse(input->bytes + input->begin, input->used, FRAME_BYTES_MAX, &header, &message) ==
		       FRAME_COMPLETE) {
		check(input->bytes + input->begin + header, message, lengths, i);
		input_drop(input, header + message);
	}
}

START_TEST(messages_come_out_as_they_went_in)
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
		uint8_t *to = input.used ? input_room(&input, &room) : NULL;

		n = (size_t)rand() % ONE_READ + 1;
		n = n < left ? n : left;
		n = n < room ? n : room;
		ck_assert_uint_gt(n, 0);
		if (to) {
			memcpy(to, stream.bytes + stream.at, n);
			input_add(&input, n);
		} else {
			ck_assert_int_eq(input_keep(&input, stream.bytes + stream.at, n), 0);
		}
		stream.at += n;
		handle(&input, lengths, &next);
	}
	ck_assert_uint_eq(next, MESSAGES);
	ck_assert_uint_eq(input.used, 0);
	input_deinit(&input);
	free(stream.bytes);
}
END_TEST

START_TEST(room_follows_what_has_come)
{
	uint8_t header[FRAME_HEADER_BYTES_MAX + 1] = {0};
	size_t n = frame_header(FRAME_BYTES_MAX, header), room, used = 0;
	struct input input;
	uint8_t *to;

	input_init(&input, &heap_libc);
	ck_assert_int_eq(input_keep(&input, header, n + 1), 0);
	while (used + 1 < FRAME_BYTES_MAX) {
		to = input_room(&input, &room);
		ck_assert_ptr_nonnull(to);
		ck_assert_uint_le(input.room, (64 << 10) + 16 * (used + n + 1));
		ck_assert_uint_le(input.room, FRAME_BYTES_MAX);
		memset(to, 7, room);
		input_add(&input, room);
		used = input.used;
		if (input.body && input.used == input.body)
			break;
	}
	to = input_take_long(&input, &room);
	ck_assert_ptr_nonnull(to);
	ck_assert_uint_eq(room, FRAME_BYTES_MAX);
	ck_assert_uint_eq(to[0], 0);
	ck_assert_uint_eq(to[room - 1], 7);
	free(to);
	ck_assert_ptr_null(input.bytes);
}
END_TEST

Suite *suite_input(void)
{
	Suite *suite = suite_create("input");
	TCase *tests = tcase_create("input");

	tcase_add_loop_test(tests, messages_come_out_as_they_went_in, 0, 2);
	tcase_add_test(tests, room_follows_what_has_come);
	suite_add_tcase(suite, tests);
	return suite;
}
