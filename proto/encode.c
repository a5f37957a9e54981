/* A length comes before what it counts: one byte is kept for it, which most need, and what follows is moved where
 * it takes more. So nothing is ever written past the end that the message has at last. */
#include "proto/encode.h"

#include <string.h>

#include "proto/frame.h"
#include "proto/member.h"

static inline uint8_t *put_varint(uint8_t *at, uint64_t value)
{
	for (; value > 0x7f; value >>= 7)
		*at++ = (uint8_t)(value | 0x80);
	*at++ = (uint8_t)value;
	return at;
}

static inline uint64_t zigzag(int64_t value)
{
	return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

static uint8_t *put_bytes(uint8_t *at, const void *bytes, size_t n)
{
	at = put_varint(at, n);
	return n ? (uint8_t *)memcpy(at, bytes, n) + n : at;
}

/* The length of what came since `at`, in front of it. */
static uint8_t *put_length(uint8_t *at, uint8_t *end)
{
	uint8_t header[FRAME_HEADER_BYTES_MAX];
	size_t n = (size_t)(end - at - 1), width;

	if (n <= 0x7f) {
		*at = (uint8_t)n;
		return end;
	}
	width = frame_header(n, header);
	memmove(at + width, at + 1, n);
	memcpy(at, header, width);
	return at + width + n;
}

static uint8_t *put_message(uint8_t *at, const ProtobufCMessage *message);

/* Without its tag. */
static uint8_t *put_value(uint8_t *at, ProtobufCType type, const void *value)
{
	const ProtobufCBinaryData *data = value;

	switch (type) {
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_ENUM:
		return put_varint(at, (uint64_t)(int64_t) * (const int32_t *)value);
	case PROTOBUF_C_TYPE_SINT32:
		return put_varint(at, (uint32_t)zigzag(*(const int32_t *)value));
	case PROTOBUF_C_TYPE_UINT32:
		return put_varint(at, *(const uint32_t *)value);
	case PROTOBUF_C_TYPE_SINT64:
		return put_varint(at, zigzag(*(const int64_t *)value));
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_UINT64:
		return put_varint(at, *(const uint64_t *)value);
	case PROTOBUF_C_TYPE_BOOL:
		return put_varint(at, *(const protobuf_c_boolean *)value != 0);
	case PROTOBUF_C_TYPE_STRING:
		return put_bytes(at, *(char *const *)value, strlen(*(char *const *)value));
	case PROTOBUF_C_TYPE_BYTES:
		return put_bytes(at, data->data, data->len);
	case PROTOBUF_C_TYPE_MESSAGE:
		return put_length(at, put_message(at + 1, *(ProtobufCMessage *const *)value));
	default:
		return (uint8_t *)memcpy(at, value, member_wire_bytes(type)) + member_wire_bytes(type);
	}
}

static inline uint8_t *put_field(uint8_t *at, const ProtobufCFieldDescriptor *field, const void *value)
{
	at = put_varint(at, (uint64_t)field->id << 3 | member_wire_type(field->type));
	return put_value(at, field->type, value);
}

static uint8_t *put_list(uint8_t *at, const ProtobufCFieldDescriptor *field, const ProtobufCMessage *message)
{
	size_t n = *member_count(message, field), bytes = member_bytes(field);
	const char *list = *(char *const *)member_of(message, field), *end;
	uint8_t *length;

	if (!n)
		return at;
	end = list + n * bytes;
	if (!(field->flags & PROTOBUF_C_FIELD_FLAG_PACKED)) {
		for (; list < end; list += bytes)
			at = put_field(at, field, list);
		return at;
	}
	length = at = put_varint(at, (uint64_t)field->id << 3 | PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED);
	for (at++; list < end; list += bytes)
		at = put_value(at, field->type, list);
	return put_length(length, at);
}

/* What is left out. Of a float 0 has either sign. */
static inline bool is_zero(const ProtobufCFieldDescriptor *field, const void *value)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_FLOAT:
		return *(const float *)value == 0;
	case PROTOBUF_C_TYPE_DOUBLE:
		return *(const double *)value == 0;
	case PROTOBUF_C_TYPE_BOOL:
		return !*(const protobuf_c_boolean *)value;
	case PROTOBUF_C_TYPE_STRING:
		return !*(const char *const *)value || !**(const char *const *)value;
	case PROTOBUF_C_TYPE_BYTES:
		return !((const ProtobufCBinaryData *)value)->len;
	case PROTOBUF_C_TYPE_MESSAGE:
		return !*(const void *const *)value;
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		return !*(const uint64_t *)value;
	default:
		return !*(const uint32_t *)value;
	}
}

/* Of a oneof 0 says something, but not a text that nobody has set. */
static bool is_chosen(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *message, const void *value)
{
	bool points = field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE;

	return *member_case(message, field) == field->id &&
	       (!points || (*(const void *const *)value && *(const void *const *)value != field->default_value));
}

static uint8_t *put_message(uint8_t *at, const ProtobufCMessage *message)
{
	const ProtobufCFieldDescriptor *field = message->descriptor->fields;

	for (unsigned n = message->descriptor->n_fields; n; n--, field++) {
		const void *value = member_of(message, field);

		if (field->label == PROTOBUF_C_LABEL_REPEATED)
			at = put_list(at, field, message);
		else if (member_is_of_oneof(field) ? is_chosen(field, message, value) : !is_zero(field, value))
			at = put_field(at, field, value);
	}
	for (unsigned i = 0; i < message->n_unknown_fields; i++) {
		const ProtobufCMessageUnknownField *unknown = &message->unknown_fields[i];

		at = put_varint(at, (uint64_t)unknown->tag << 3 | unknown->wire_type);
		memcpy(at, unknown->data, unknown->len);
		at += unknown->len;
	}
	return at;
}

size_t encode_message(const ProtobufCMessage *message, uint8_t *to)
{
	return (size_t)(put_message(to, message) - to);
}
