/* The reader of frames and the decoder of messages, against the plainest ones: the same frames, however the bytes
 * arrive; what protobuf-c accepts is accepted, with the same values as far as packing shows them. */
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "proto/decode.h"
#include "proto/frame.h"
#include "proto/member.h"
#include "proto/npumem.pb-c.h"
#include "tests/fuzz/fuzz.h"

enum { CAP_BYTES = 1 << 12 };

/* A length as the text of the format has it: base 128, the least digit first, of 10 bytes and 64 bits at most. */
static enum frame_result length_of(const uint8_t *bytes, size_t n, uint64_t *length, size_t *header)
{
	unsigned __int128 value = 0;

	for (*header = 0; *header < n;) {
		value |= (unsigned __int128)(bytes[*header] & 0x7f) << (7 * *header);
		if (value > UINT64_MAX || (*header == 9 && bytes[9] & 0x80))
			return FRAME_BAD_LENGTH;
		if (!(bytes[(*header)++] & 0x80)) {
			*length = (uint64_t)value;
			return FRAME_COMPLETE;
		}
	}
	return FRAME_MORE;
}

static void check_length(const uint8_t *bytes, size_t n)
{
	uint64_t length = 0;
	size_t header = 0, got_header, got_body;
	enum frame_result want = length_of(bytes, n, &length, &header);
	enum frame_result got = frame_parse(bytes, n, CAP_BYTES, &got_header, &got_body);

	if (want == FRAME_COMPLETE && length > CAP_BYTES)
		want = FRAME_TOO_LARGE;
	else if (want == FRAME_COMPLETE && n - header < length)
		want = FRAME_MORE;
	else if (want == FRAME_MORE)
		header = 0;
	if (got != want)
		fuzz_fail("a frame of %zu bytes: %d, not %d", n, got, want);
	if ((got == FRAME_COMPLETE || (got == FRAME_MORE && header)) &&
	    (got_header != header || got_body != length))
		fuzz_fail("a header of %zu for %zu, not of %zu for %zu", got_header, got_body, header,
			  (size_t)length);
}

/* The shortest header for a length gives that length. */
static void check_written(size_t length)
{
	uint8_t header[FRAME_HEADER_BYTES_MAX];
	size_t n = frame_header(length, header), got_header, got_body;

	if (frame_parse(header, n, SIZE_MAX, &got_header, &got_body) > FRAME_MORE || got_header != n ||
	    got_body != length)
		fuzz_fail("the header of %zu is not read back", length);
}

static void *take(void *ctx, size_t bytes)
{
	(void)ctx;
	return malloc(bytes);
}

static void give(void *ctx, void *memory)
{
	(void)ctx;
	free(memory);
}

static uint8_t *pack(const ProtobufCMessage *message, size_t *n)
{
	uint8_t *bytes;

	*n = protobuf_c_message_get_packed_size(message);
	bytes = malloc(*n ? *n : 1);
	if (!bytes)
		fuzz_fail("no memory");
	protobuf_c_message_pack(message, bytes);
	return bytes;
}

/* npumem leaves unknown fields out. */
static void drop_unknown(ProtobufCMessage *message)
{
	message->n_unknown_fields = 0;
	for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
		ProtobufCMessage **members = member_of(message, field);
		size_t n = 1;

		if (field->type != PROTOBUF_C_TYPE_MESSAGE ||
		    (member_is_of_oneof(field) && *member_case(message, field) != field->id))
			continue;
		if (field->label == PROTOBUF_C_LABEL_REPEATED) {
			n = *member_count(message, field);
			members = *(ProtobufCMessage ***)members;
		}
		for (size_t j = 0; j < n; j++)
			if (members[j])
				drop_unknown(members[j]);
	}
}

static void compare(const ProtobufCMessage *ours, ProtobufCMessage *theirs)
{
	size_t n, n_theirs;
	uint8_t *of_ours, *of_theirs;

	drop_unknown(theirs);
	of_ours = pack(ours, &n);
	of_theirs = pack(theirs, &n_theirs);

	if (n != n_theirs || memcmp(of_ours, of_theirs, n) != 0)
		fuzz_fail("a message of other values than protobuf-c finds: %zu and %zu bytes", n, n_theirs);
	free(of_ours);
	free(of_theirs);
}

static void check_message(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t n)
{
	struct budget ours, theirs;
	struct decode decode = {.budget = &ours, .n_fields = SIZE_MAX};
	ProtobufCMessage *of_ours, *of_theirs;

	budget_init(&ours, take, give, NULL);
	budget_init(&theirs, take, give, NULL);
	budget_reset(&ours, n);
	budget_reset(&theirs, n);
	ours.limit = theirs.limit = SIZE_MAX;
	of_ours = decode_message(&decode, type, (uint8_t *)(uintptr_t)bytes, n);
	of_theirs = protobuf_c_message_unpack(type, &theirs.allocator, n, bytes);
	if (!of_ours != !of_theirs && !decode.long_text)
		fuzz_fail("a %s of %zu bytes that only %s accepts", type->short_name, n,
			  of_ours ? "npumem" : "protobuf-c");
	if (of_ours)
		compare(of_ours, of_theirs);
	budget_deinit(&ours);
	budget_deinit(&theirs);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static const ProtobufCMessageDescriptor *const types[] = {&npumem__v1__request__descriptor,
								  &npumem__v1__response__descriptor,
								  &npumem__v1__record_entry__descriptor};
	struct fuzz_bytes input = {bytes, bytes + n};
	unsigned type = fuzz_byte(&input) % 3;
	size_t left = fuzz_left(&input), header, body, length = 0;

	/* Every beginning of it, as bytes arrive. */
	for (size_t i = 0; i <= left && i <= FRAME_HEADER_BYTES_MAX + 2; i++)
		check_length(input.at, i);
	check_length(input.at, left);
	memcpy(&length, input.at, left < sizeof(length) ? left : sizeof(length));
	check_written(length);
	if (frame_parse(input.at, left, FRAME_BYTES_MAX, &header, &body) == FRAME_COMPLETE)
		check_message(types[type], input.at + header, body);
	check_message(types[type], input.at, left);
	return 0;
}
