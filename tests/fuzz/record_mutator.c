/* Mutations of a file of records: three of four times one of its messages is changed and stays one. */
#include <string.h>

#include "proto/frame.h"
#include "proto/npumem.pb-c.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"

enum { MAGIC_BYTES = 16, MESSAGES_MAX = 256, MESSAGE_MAX = 4000 };

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t n, size_t room);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n, size_t room, unsigned seed);

/* Where the i-th message of `begins` begins, with its length; how many there are. */
static unsigned find_messages(const uint8_t *bytes, size_t n, size_t *begins)
{
	unsigned count = 0;
	size_t at = MAGIC_BYTES, header, body;

	while (at < n && count < MESSAGES_MAX &&
	       frame_parse(bytes + at, n - at, n, &header, &body) == FRAME_COMPLETE) {
		begins[count++] = at;
		at += header + body;
	}
	return count;
}

__attribute__((used, visibility("default"))) size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n, size_t room,
									    unsigned seed)
{
	static uint8_t message[MESSAGE_MAX], rest[1 << 16];
	uint8_t length[FRAME_HEADER_BYTES_MAX];
	uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	size_t begins[MESSAGES_MAX], header, body, n_rest, n_length, n_message, begin;
	unsigned count = find_messages(bytes, n, begins);

	if (seed % 4 == 0 || !count || n > sizeof(rest))
		return LLVMFuzzerMutate(bytes, n, room);
	begin = begins[(seed >> 4) % count];
	frame_parse(bytes + begin, n - begin, n, &header, &body);
	if (body > MESSAGE_MAX)
		return LLVMFuzzerMutate(bytes, n, room);
	n_rest = n - begin - header - body;
	memcpy(message, bytes + begin + header, body);
	memcpy(rest, bytes + begin + header + body, n_rest);
	n_message = mutate_message(&npumem__v1__record_entry__descriptor, message, body, MESSAGE_MAX, &random);
	n_length = frame_header(n_message, length);
	if (begin + n_length + n_message + n_rest > room)
		return LLVMFuzzerMutate(bytes, n, room);
	memcpy(bytes + begin, length, n_length);
	memcpy(bytes + begin + n_length, message, n_message);
	memcpy(bytes + begin + n_length + n_message, rest, n_rest);
	return begin + n_length + n_message + n_rest;
}
