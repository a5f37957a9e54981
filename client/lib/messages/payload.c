/* Tags and lengths by hand, for two messages only. A length is taken to be true only where it stays within that of
 * what it is in; everything else is for the unpacking to refuse. */
#include "client/lib/messages/payload.h"

#include "proto/frame.h"

enum {
	WIRE_VARINT = 0,
	WIRE_64 = 1,
	WIRE_BYTES = 2,
	WIRE_32 = 5,
	REQUEST_ID = 1 << 3 | WIRE_VARINT,
	REQUEST_WRITE = 13 << 3 | WIRE_BYTES,
	REQUEST_ANSWERED_BELOW = 60 << 3 | WIRE_VARINT,
	WRITE_DATA = 3 << 3 | WIRE_BYTES,
	RESPONSE_ID = 1,
	RESPONSE_STATUS = 2,
	RESPONSE_DONE = 14,
	DONE_DATA = 7,
};

static size_t varint_size(uint64_t value)
{
	size_t n = 1;
	for (; value >= 0x80; value >>= 7)
		n++;
	return n;
}

/* A varint as frame lengths are, too. */
static size_t varint_put(uint64_t value, uint8_t *to)
{
	return frame_header((size_t)value, to);
}

/* Of the WriteRequest, data included. */
static size_t write_size(const Npumem__V1__Request *request, size_t bytes)
{
	return npumem__v1__write_request__get_packed_size(request->write) + 1 + varint_size(bytes) + bytes;
}

size_t payload_write_size(const Npumem__V1__Request *request, size_t bytes)
{
	size_t inner = write_size(request, bytes), n = 1 + varint_size(request->id);
	if (request->answered_below)
		n += varint_size(REQUEST_ANSWERED_BELOW) + varint_size(request->answered_below);
	return n + 1 + varint_size(inner) + inner;
}

size_t payload_write_head(const Npumem__V1__Request *request, size_t bytes, uint8_t *to)
{
	size_t n = 0;
	to[n++] = REQUEST_ID;
	n += varint_put(request->id, to + n);
	if (request->answered_below) {
		n += varint_put(REQUEST_ANSWERED_BELOW, to + n);
		n += varint_put(request->answered_below, to + n);
	}
	to[n++] = REQUEST_WRITE;
	n += varint_put(write_size(request, bytes), to + n);
	n += npumem__v1__write_request__pack(request->write, to + n);
	to[n++] = WRITE_DATA;
	return n + varint_put(bytes, to + n);
}

/* ---- a read's ---- */

struct reader {
	const uint8_t *bytes;
	size_t at, n;
	enum payload_result failed; /* NONE or MORE; FOUND while all is well */
};

static uint64_t varint_get(struct reader *reader)
{
	uint64_t value = 0;
	for (unsigned shift = 0; shift < 64; shift += 7) {
		if (reader->at == reader->n) {
			reader->failed = PAYLOAD_MORE;
			return 0;
		}
		uint8_t byte = reader->bytes[reader->at++];
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	reader->failed = PAYLOAD_NONE;
	return 0;
}

static void skip_bytes(struct reader *reader, uint64_t bytes)
{
	if (bytes > reader->n - reader->at)
		reader->failed = PAYLOAD_MORE;
	else
		reader->at += (size_t)bytes;
}

static void skip_value(struct reader *reader, unsigned wire)
{
	uint64_t bytes;
	switch (wire) {
	case WIRE_VARINT:
		varint_get(reader);
		return;
	case WIRE_64:
		skip_bytes(reader, 8);
		return;
	case WIRE_32:
		skip_bytes(reader, 4);
		return;
	case WIRE_BYTES:
		bytes = varint_get(reader);
		if (reader->failed == PAYLOAD_FOUND)
			skip_bytes(reader, bytes);
		return;
	default:
		reader->failed = PAYLOAD_NONE;
	}
}

/* A field of bytes, which begin where the reader is then. */
struct field {
	size_t at, length_at;
	uint64_t length;
};

/* Reads fields up to `number`, which ends by `end`. */
static enum payload_result find_bytes(struct reader *reader, unsigned number, size_t end, uint64_t *id,
				      struct field *field)
{
	while (reader->at < end) {
		field->at = reader->at;
		uint64_t tag = varint_get(reader);
		if (reader->failed != PAYLOAD_FOUND)
			return reader->failed;
		if (tag == (number << 3 | WIRE_BYTES)) {
			field->length_at = reader->at;
			field->length = varint_get(reader);
			if (reader->failed == PAYLOAD_FOUND &&
			    (reader->at > end || field->length > end - reader->at))
				reader->failed = PAYLOAD_NONE;
			return reader->failed;
		}
		if (id && tag >> 3 == RESPONSE_STATUS)
			return PAYLOAD_NONE; /* refused */
		if (id && tag == (RESPONSE_ID << 3 | WIRE_VARINT))
			*id = varint_get(reader);
		else
			skip_value(reader, tag & 7);
		if (reader->failed != PAYLOAD_FOUND)
			return reader->failed;
	}
	return PAYLOAD_NONE;
}

enum payload_result payload_find(const uint8_t *message, size_t n, size_t total, struct payload *payload)
{
	struct reader reader = {.bytes = message, .n = n, .failed = PAYLOAD_FOUND};
	struct field field;
	*payload = (struct payload){.id = 0};
	enum payload_result result = find_bytes(&reader, RESPONSE_DONE, total, &payload->id, &field);
	if (result != PAYLOAD_FOUND)
		return result;
	payload->done_at = field.length_at;
	payload->done_bytes = reader.at - field.length_at;
	payload->done_length = (size_t)field.length;
	result = find_bytes(&reader, DONE_DATA, reader.at + (size_t)field.length, NULL, &field);
	if (result != PAYLOAD_FOUND)
		return result;
	payload->at = reader.at;
	payload->field_at = field.at;
	payload->bytes = (size_t)field.length;
	return payload->id && payload->bytes ? PAYLOAD_FOUND : PAYLOAD_NONE;
}

void payload_cut_length(const struct payload *payload, uint8_t *message)
{
	size_t length = payload->done_length - (payload->at - payload->field_at) - payload->bytes;
	for (size_t i = 0; i < payload->done_bytes; i++, length >>= 7)
		message[payload->done_at + i] =
			(uint8_t)((length & 0x7f) | (i + 1 < payload->done_bytes ? 0x80 : 0));
}
