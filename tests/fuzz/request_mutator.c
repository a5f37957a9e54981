/* Mutations of an input of `request`: three of four times a message stays one. */
#include <string.h>

#include "proto/npumem.pb-c.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/request.h"

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t n, size_t room);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n, size_t room, unsigned seed);

/* Where a message lies in an input, and its length before it. */
struct span {
	size_t length, begin, end;
};

static unsigned find_messages(const uint8_t *bytes, size_t n, struct span *spans)
{
	struct fuzz_bytes input = {bytes, bytes + n};
	unsigned count = 0;

	fuzz_byte(&input);
	while (fuzz_left(&input) && count < REQUEST_MESSAGES_MAX) {
		if (!request_is_message(fuzz_byte(&input)))
			continue;
		spans[count].length = (size_t)(input.at - bytes);
		spans[count].end = request_length(&input);
		spans[count].begin = (size_t)(input.at - bytes);
		spans[count].end += spans[count].begin;
		input.at = bytes + spans[count++].end;
	}
	return count;
}

static size_t put_length(uint8_t *to, size_t n)
{
	to[0] = (uint8_t)(n < 0x80 ? n : (n & 0x7f) | 0x80);
	to[1] = (uint8_t)(n >> 7);
	return n < 0x80 ? 1 : 2;
}

__attribute__((used, visibility("default"))) size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n, size_t room,
									    unsigned seed)
{
	enum { MESSAGE_MAX = 4000 };
	static uint8_t message[MESSAGE_MAX], rest[1 << 16];
	struct span spans[REQUEST_MESSAGES_MAX];
	uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	unsigned count = find_messages(bytes, n, spans);
	const struct span *span = &spans[count ? (seed >> 4) % count : 0];
	size_t n_message, n_rest, header;
	uint8_t length[2];

	if (seed % 4 == 0 || !count || span->end - span->begin > MESSAGE_MAX || n > sizeof(rest))
		return LLVMFuzzerMutate(bytes, n, room);
	n_message = span->end - span->begin;
	n_rest = n - span->end;
	memcpy(message, bytes + span->begin, n_message);
	memcpy(rest, bytes + span->end, n_rest);
	n_message = mutate_message(&npumem__v1__request__descriptor, message, n_message, MESSAGE_MAX, &random);
	header = put_length(length, n_message);
	if (span->length + header + n_message + n_rest > room)
		return LLVMFuzzerMutate(bytes, n, room);
	memcpy(bytes + span->length, length, header);
	memcpy(bytes + span->length + header, message, n_message);
	memcpy(bytes + span->length + header + n_message, rest, n_rest);
	return span->length + header + n_message + n_rest;
}
