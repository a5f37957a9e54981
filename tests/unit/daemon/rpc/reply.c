#include "daemon/rpc/reply.h"

#include "tests/unit/daemon/rpc/talk.h"

/* A reply with a dump of `bytes` as its result, with a guess that may be wrong. */
static void round_trip(size_t bytes, size_t guess)
{
	struct buffer out;
	struct reply reply;
	struct npumem_error error;
	size_t mark, header, body;
	static uint8_t expected[1 << 15];
	npumem_error_clear(&error);
	buffer_init(&out, &heap_libc);
	ck_assert_int_eq(reply_begin(&reply, &out), 0);
	ck_assert_int_eq(reply_reserve(&reply, bytes + 2 * REPLY_TAG_BYTES, &error), 0);
	reply_expect(&reply, guess);
	mark = reply_open(&reply, NPUMEM__V1__RESPONSE__RESULT_DUMP, guess);
	uint8_t *to = reply_bytes(&reply, 1, bytes);
	for (size_t i = 0; i < bytes; i++)
		expected[i] = (uint8_t)(i * 31);
	memcpy(to, expected, bytes);
	reply_close(&reply, mark, guess);
	reply_end(&reply, 5, &error);
	ck_assert_uint_le(out.used, out.room);
	ck_assert_int_eq(frame_parse(out.bytes, out.used, FRAME_BYTES_MAX, &header, &body), FRAME_COMPLETE);
	ck_assert_uint_eq(header + body, out.used);
	Npumem__V1__Response *response = npumem__v1__response__unpack(NULL, body, out.bytes + header);
	ck_assert_ptr_nonnull(response);
	ck_assert_uint_eq(response->id, 5);
	ck_assert_uint_eq(response->dump->data.len, bytes);
	ck_assert_mem_eq(response->dump->data.data, expected, bytes);
	npumem__v1__response__free_unpacked(response, NULL);
	buffer_deinit(&out);
}

TEST(any_guess_gives_the_same_reply)
{
	static const size_t guesses[] = {0, 127, 128, 16383, 16384, 3000000};
	for (size_t guess = 0; guess < sizeof(guesses) / sizeof(guesses[0]); guess++) {
		for (size_t bytes = 100; bytes < 140; bytes++)
			round_trip(bytes, guesses[guess]);
		for (size_t bytes = 16360; bytes < 16400; bytes += 3)
			round_trip(bytes, guesses[guess]);
	}
}

TEST(the_longest_error_fits_what_is_kept_for_it)
{
	struct buffer out;
	struct reply reply;
	struct npumem_error error = {.status = NPUMEM_INVALID, .n_fields = NPUMEM_FIELDS_MAX};
	memset(error.message, '\xff', sizeof(error.message) - 1);
	for (unsigned i = 0; i < NPUMEM_FIELDS_MAX; i++) {
		memset(error.fields[i].key, 'k', sizeof(error.fields[i].key) - 1);
		memset(error.fields[i].text, '\n', sizeof(error.fields[i].text) - 1);
		error.fields[i].is_text = true;
	}
	buffer_init(&out, &heap_libc);
	ck_assert_int_eq(reply_begin(&reply, &out), 0);
	reply_end(&reply, UINT64_MAX, &error);
	ck_assert_uint_le(out.used, REPLY_REST_BYTES);
	/* One line of ASCII, whatever a client made the daemon quote. */
	for (size_t i = 0; error.message[i]; i++)
		ck_assert_int_eq(error.message[i], '?');
	ck_assert_int_eq(error.fields[3].text[0], '?');
	buffer_deinit(&out);
}

/* What is in it already counts. */
TEST(no_reply_is_longer_than_a_frame)
{
	struct buffer out = {.used = FRAME_BYTES_MAX - 1000};
	struct reply reply = {.out = &out};
	struct npumem_error error;
	npumem_error_clear(&error);
	ck_assert_int_eq(reply_check_cap(&reply, 900, &error), 0);
	ck_assert_int_eq(reply_check_cap(&reply, 1000, &error), NPUMEM_INVALID);
	ck_assert_int_eq(reply_check_cap(&reply, SIZE_MAX, &error), NPUMEM_INVALID);
}

TEST(a_refusal_has_no_id)
{
	struct buffer out;
	size_t header, body;
	buffer_init(&out, &heap_libc);
	ck_assert_int_eq(rpc_refuse(&out, NPUMEM_INVALID, "why"), 0);
	ck_assert_int_eq(frame_parse(out.bytes, out.used, 100, &header, &body), FRAME_COMPLETE);
	Npumem__V1__Response *response = npumem__v1__response__unpack(NULL, body, out.bytes + header);
	ck_assert_uint_eq(response->id, 0);
	ck_assert_int_eq((int)response->status, NPUMEM_INVALID);
	ck_assert_str_eq(response->message, "why");
	npumem__v1__response__free_unpacked(response, NULL);
	buffer_deinit(&out);
}

TEST(a_buffer_keeps_what_it_has_when_it_cannot_grow)
{
	struct world world = {.fail_at = 2};
	struct buffer buffer;
	world.heap = (struct heap){world_alloc, world_release, &world};
	buffer_init(&buffer, &world.heap);
	ck_assert_int_eq(buffer_reserve(&buffer, 10), 0);
	memcpy(buffer.bytes, "0123456789", 10);
	buffer.used = 10;
	ck_assert_int_lt(buffer_reserve(&buffer, 1 << 20), 0);
	ck_assert_int_lt(buffer_reserve(&buffer, SIZE_MAX), 0);
	ck_assert_mem_eq(buffer.bytes, "0123456789", 10);
	ck_assert_int_eq(buffer_reserve(&buffer, 1 << 20), 0);
	ck_assert_mem_eq(buffer.bytes, "0123456789", 10);
	buffer_deinit(&buffer);
	ck_assert_uint_eq(world.n_alive, 0);
}
