/* Copies a message field by field, without unpacking it: a read's answer may be megabytes, and its data are
 * stepped over. The length of what got shorter keeps its width, so that one pass does; every decoder takes such a
 * varint. */
#include "proto/outline.h"

#include <stdbool.h>
#include <string.h>

/* The messages that something is left out of, by the numbers of npumem.proto. */
enum outline_type { OUTLINE_ALL, OUTLINE_RESPONSE, OUTLINE_SUBMITTED, OUTLINE_DONE };
enum { RESPONSE_DONE = 14, RESPONSE_SUBMITTED = 15, SUBMITTED_DONE = 1, DONE_DATA = 7 };
enum { WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_32 = 5 };

struct field {
	uint64_t number;
	unsigned wire;
	size_t head, length_at; /* bytes before its content; where its length begins */
	uint64_t content;
};

/* Bytes of a varint; 0: there is none. */
static size_t varint(const uint8_t *from, size_t n, uint64_t *value)
{
	*value = 0;
	for (size_t i = 0; i < n && i < 10; i++) {
		*value |= (uint64_t)(from[i] & 0x7f) << 7 * i;
		if (from[i] < 0x80)
			return i + 1;
	}
	return 0;
}

static void put_varint(uint8_t *to, size_t width, uint64_t value)
{
	for (size_t i = 0; i < width; i++, value >>= 7)
		to[i] = (uint8_t)((value & 0x7f) | (i + 1 < width ? 0x80 : 0));
}

static bool read_field(const uint8_t *from, size_t n, struct field *field)
{
	uint64_t key, ignored;

	*field = (struct field){.head = varint(from, n, &key)};
	if (!field->head)
		return false;
	field->number = key >> 3;
	field->wire = key & 7;
	field->length_at = field->head;
	switch (field->wire) {
	case WIRE_VARINT:
		field->content = varint(from + field->head, n - field->head, &ignored);
		return field->content > 0;
	case WIRE_64:
	case WIRE_32:
		field->content = field->wire == WIRE_64 ? 8 : 4;
		break;
	case WIRE_BYTES:
		field->head += varint(from + field->head, n - field->head, &field->content);
		if (field->head == field->length_at)
			return false;
		break;
	default:
		return false;
	}
	return field->content <= n - field->head;
}

static enum outline_type type_of(enum outline_type outer, const struct field *field)
{
	if (field->wire != WIRE_BYTES)
		return OUTLINE_ALL;
	if (outer == OUTLINE_RESPONSE && field->number == RESPONSE_SUBMITTED)
		return OUTLINE_SUBMITTED;
	if ((outer == OUTLINE_RESPONSE && field->number == RESPONSE_DONE) ||
	    (outer == OUTLINE_SUBMITTED && field->number == SUBMITTED_DONE))
		return OUTLINE_DONE;
	return OUTLINE_ALL;
}

/* At most three deep. False: no message. */
static bool copy(enum outline_type type, const uint8_t *from, size_t n, uint8_t *to, size_t *written)
{
	struct field field;

	*written = 0;
	for (size_t at = 0; at < n; at += field.head + (size_t)field.content) {
		uint8_t *here = to ? to + *written : NULL;
		enum outline_type inner;
		size_t content;

		if (!read_field(from + at, n - at, &field))
			return false;
		if (type == OUTLINE_DONE && field.number == DONE_DATA)
			continue;
		content = (size_t)field.content;
		inner = type_of(type, &field);
		if (inner != OUTLINE_ALL &&
		    !copy(inner, from + at + field.head, content, here ? here + field.head : NULL, &content))
			return false;
		if (here)
			memcpy(here, from + at, inner == OUTLINE_ALL ? field.head + content : field.head);
		if (here && inner != OUTLINE_ALL)
			put_varint(here + field.length_at, field.head - field.length_at, content);
		*written += field.head + content;
	}
	return true;
}

size_t outline_response(const uint8_t *message, size_t n, uint8_t *to)
{
	size_t written;

	return copy(OUTLINE_RESPONSE, message, n, to, &written) ? written : 0;
}
