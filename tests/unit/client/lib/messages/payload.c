/* Payloads beside their messages, compared with what protobuf-c makes of the whole. */
#include "client/lib/messages/payload.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/message.h"
#include "tests/support/test.h"

static uint32_t random_next(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	return *state ^= *state << 5;
}

TEST(a_write_is_what_protobuf_writes)
{
	static const size_t sizes[] = {1, 127, 128, 5000, 70000, 3000000};
	uint8_t *data = calloc(1, 3000000), *packed = malloc(3000100);
	for (unsigned i = 0; i < 6 * 4; i++) {
		Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT, *got;
		Npumem__V1__WriteRequest write = NPUMEM__V1__WRITE_REQUEST__INIT;
		Npumem__V1__Ref ref = NPUMEM__V1__REF__INIT;
		size_t bytes = sizes[i / 4];
		memset(data, (int)i + 1, bytes);
		request.id = UINT64_C(1) << (i % 4 * 15);
		request.call_case = NPUMEM__V1__REQUEST__CALL_WRITE;
		request.write = &write;
		write.tensor = &ref;
		write.first = i % 3 ? 1000 * (int64_t)i : 0;
		ref.handle = 77;
		size_t head = payload_write_head(&request, bytes, packed);
		ck_assert_uint_le(head, npumem__v1__request__get_packed_size(&request) + PAYLOAD_HEAD_BYTES);
		ck_assert_uint_eq(head + bytes, payload_write_size(&request, bytes));
		memcpy(packed + head, data, bytes);
		got = npumem__v1__request__unpack(NULL, head + bytes, packed);
		ck_assert_ptr_nonnull(got);
		ck_assert_uint_eq(got->id, request.id);
		ck_assert_int_eq(got->write->first, write.first);
		ck_assert_uint_eq(got->write->tensor->handle, 77);
		ck_assert_uint_eq(got->write->data.len, bytes);
		ck_assert_mem_eq(got->write->data.data, data, bytes);
		npumem__v1__request__free_unpacked(got, NULL);
	}
	free(data);
	free(packed);
}

/* A response with data, in a buffer of its own size so that a sanitizer sees each byte too many. */
static uint8_t *response_of(size_t data_bytes, bool before, bool behind, size_t *n)
{
	Npumem__V1__Done done = NPUMEM__V1__DONE__INIT;
	uint8_t *data = malloc(data_bytes + 1);
	for (size_t i = 0; i < data_bytes; i++)
		data[i] = (uint8_t)(i * 7);
	Npumem__V1__Response response = {MESSAGE(response), .id = 300,
					 .result_case = NPUMEM__V1__RESPONSE__RESULT_DONE, .done = &done};
	done.data.data = data;
	done.data.len = data_bytes;
	done.macs = before ? 99 : 0;
	done.warning = (char *)(uintptr_t)(before ? "careful" : "");
	done.end_ns = behind ? 12345 : 0;
	*n = npumem__v1__response__get_packed_size(&response);
	uint8_t *message = malloc(*n);
	npumem__v1__response__pack(&response, message);
	free(data);
	return message;
}

/* Takes the data out as the inbox does; what is left must be the rest of the message. */
static void check_cut(uint8_t *message, size_t n, size_t data_bytes, bool before, bool behind)
{
	struct payload payload;
	ck_assert_int_eq(payload_find(message, n, n, &payload), PAYLOAD_FOUND);
	ck_assert_uint_eq(payload.id, 300);
	ck_assert_uint_eq(payload.bytes, data_bytes);
	bool same = true;
	for (size_t i = 0; i < data_bytes; i++)
		same &= message[payload.at + i] == (uint8_t)(i * 7);
	ck_assert(same);
	size_t end = payload.at + payload.bytes;
	memmove(message + payload.field_at, message + end, n - end);
	payload_cut_length(&payload, message);
	Npumem__V1__Response *got = npumem__v1__response__unpack(NULL, n - (end - payload.field_at), message);
	ck_assert_ptr_nonnull(got);
	ck_assert_uint_eq(got->id, 300);
	ck_assert_uint_eq(got->done->data.len, 0);
	ck_assert_int_eq(got->done->macs, before ? 99 : 0);
	ck_assert_uint_eq(got->done->end_ns, behind ? 12345 : 0);
	npumem__v1__response__free_unpacked(got, NULL);
}

TEST(the_data_of_a_read_are_found)
{
	static const size_t sizes[] = {1, 120, 128, 16500, 2100000};
	for (unsigned i = 0; i < 5 * 4; i++) {
		size_t n;
		uint8_t *message = response_of(sizes[i / 4], i & 1, i & 2, &n);
		check_cut(message, n, sizes[i / 4], i & 1, i & 2);
		free(message);
	}
}

TEST(at_every_byte_more_is_asked_for)
{
	struct payload whole, payload;
	size_t n;
	uint8_t *message = response_of(1000, true, true, &n);
	ck_assert_int_eq(payload_find(message, n, n, &whole), PAYLOAD_FOUND);
	for (size_t cut = 0; cut < n; cut++) {
		uint8_t *part = malloc(cut ? cut : 1);
		memcpy(part, message, cut);
		enum payload_result result = payload_find(part, cut, n, &payload);
		ck_assert_int_eq(result, cut < whole.at ? PAYLOAD_MORE : PAYLOAD_FOUND);
		ck_assert(result == PAYLOAD_MORE || payload.at == whole.at);
		free(part);
	}
	free(message);
}

/* Whatever the bytes are: nothing outside is read, and what is found lies within. */
TEST(damaged_messages)
{
	uint32_t state = 3;
	unsigned found = 0;
	bool within = true;
	size_t n;
	uint8_t *message = response_of(300, true, true, &n);
	ck_assert_uint_le(n, 512);
	for (unsigned round = 0; round < 200000; round++) {
		struct payload payload;
		uint8_t damaged[512];
		size_t cut = 1 + random_next(&state) % n;
		memcpy(damaged, message, n);
		for (unsigned i = 0; i < 1 + round % 4; i++)
			damaged[random_next(&state) % 40] = (uint8_t)random_next(&state);
		uint8_t *part = malloc(cut);
		memcpy(part, damaged, cut);
		if (payload_find(part, cut, n, &payload) == PAYLOAD_FOUND) {
			within &= payload.at <= cut && payload.bytes <= n - payload.at &&
				  payload.done_at < payload.field_at && payload.field_at < payload.at;
			payload_cut_length(&payload, part);
			found++;
		}
		free(part);
	}
	ck_assert(within);
	ck_assert_uint_gt(found, 1000);
	free(message);
}

TEST(a_refusal_has_none)
{
	Npumem__V1__Done done = NPUMEM__V1__DONE__INIT;
	struct payload payload;
	uint8_t data[100] = {0}, message[200];
	Npumem__V1__Response response = {MESSAGE(response), .id = 1, .status = NPUMEM__V1__STATUS__DATA_LOST,
					 .result_case = NPUMEM__V1__RESPONSE__RESULT_DONE, .done = &done};
	done.data = (ProtobufCBinaryData){sizeof(data), data};
	size_t n = npumem__v1__response__pack(&response, message);
	ck_assert_int_eq(payload_find(message, n, n, &payload), PAYLOAD_NONE);
	response.status = 0;
	response.id = 0;
	n = npumem__v1__response__pack(&response, message);
	ck_assert_int_eq(payload_find(message, n, n, &payload), PAYLOAD_NONE);
}
