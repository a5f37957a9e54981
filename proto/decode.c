/* One loop over the fields of a message, one function for each kind of value. Invariant: nothing reads at or past
 * `end`, and whatever a message says of its size, memory is taken only for what is there. */
#include "proto/decode.h"

#include <endian.h>
#include <limits.h>
#include <string.h>

#include "proto/member.h"
#include "proto/merge.h"

enum {
	VARINT_BYTES_MAX = 10,
	SHORT_VARINT_BYTES_MAX = 5, /* of a tag, and of a length */
	PACKED_BOOL_MAX = 1,
};

/* A field's value as it stands in the message. */
struct value {
	const uint8_t *start; /* with the length in front, where there is one */
	const uint8_t *at, *end;
	uint64_t number; /* of a varint and of what has a fixed size */
	unsigned wire_type;
	uint32_t id;
};

/* Returns what comes after it; NULL where it is longer than `most` bytes, or cut off. */
static const uint8_t *take_long_varint(const uint8_t *at, const uint8_t *end, unsigned most, uint64_t *value)
{
	uint64_t number = 0;

	for (unsigned shift = 0; shift < 7 * most && at < end; shift += 7) {
		uint8_t byte = *at++;

		number |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*value = number;
			return at;
		}
	}
	return NULL;
}

static inline const uint8_t *take_varint(const uint8_t *at, const uint8_t *end, unsigned most, uint64_t *value)
{
	if (at == end || *at > 0x7f)
		return take_long_varint(at, end, most, value);
	*value = *at;
	return at + 1;
}

static int64_t unzigzag(uint64_t number)
{
	return (int64_t)(number >> 1 ^ (0 - (number & 1)));
}

/* 4 or 8 bytes. */
static uint64_t load(const uint8_t *at, size_t bytes)
{
	uint64_t number = 0;
	uint32_t half;

	if (bytes == sizeof(number)) {
		memcpy(&number, at, sizeof(number));
		return le64toh(number);
	}
	memcpy(&half, at, sizeof(half));
	return le32toh(half);
}

/* ---- one value ---- */

static void put_number(ProtobufCType type, uint64_t number, void *to)
{
	switch (type) {
	case PROTOBUF_C_TYPE_SINT32:
		*(int32_t *)to = (int32_t)unzigzag((uint32_t)number);
		break;
	case PROTOBUF_C_TYPE_SINT64:
		*(int64_t *)to = unzigzag(number);
		break;
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_DOUBLE:
		memcpy(to, &number, sizeof(number));
		break;
	default:
		memcpy(to, &(uint32_t){(uint32_t)number}, sizeof(uint32_t));
	}
}

/* A bool may be written in any way, and is false where all its bytes are 0 but for the bits that continue. */
static bool is_true(const struct value *value)
{
	for (const uint8_t *at = value->start; at < value->end; at++)
		if (*at & 0x7f)
			return true;
	return false;
}

static void *copy(struct decode *decode, const uint8_t *bytes, size_t n, size_t room)
{
	void *to = budget_alloc(decode->budget, room);

	return to && n ? memcpy(to, bytes, n) : to;
}

static bool put_string(struct decode *decode, const ProtobufCFieldDescriptor *field, const struct value *value,
		       char **to)
{
	size_t n = (size_t)(value->end - value->at);

	if (n > DECODE_TEXT_BYTES_MAX) {
		decode->long_text = field;
		decode->long_text_bytes = n;
		return false;
	}
	decode->texts_bytes += n;
	if (decode->texts_bytes > DECODE_TEXTS_BYTES_MAX)
		return false;
	*to = copy(decode, value->at, n, n + 1);
	if (!*to)
		return false;
	(*to)[n] = 0;
	return true;
}

/* What is in a list may move, and what is in a oneof may become something else: there it is copied. */
static bool put_bytes(struct decode *decode, const ProtobufCFieldDescriptor *field, const struct value *value,
		      ProtobufCBinaryData *to)
{
	bool stays = field->label != PROTOBUF_C_LABEL_REPEATED && !member_is_of_oneof(field);
	size_t n = (size_t)(value->end - value->at);

	*to = (ProtobufCBinaryData){.len = n};
	if (!n)
		return true;
	to->data = stays ? (uint8_t *)(uintptr_t)value->at : copy(decode, value->at, n, n);
	return to->data && (!stays || borrowed_add(&decode->borrowed, decode->budget, to));
}

static bool put_message(struct decode *decode, const ProtobufCFieldDescriptor *field, const struct value *value,
			ProtobufCMessage **to, ProtobufCMessage *earlier)
{
	*to = decode_message(decode, field->descriptor, value->at, (size_t)(value->end - value->at));
	return *to && (!earlier || merge_messages(decode->budget, &decode->borrowed, earlier, *to));
}

/* `earlier`: the inner message that the place has, or NULL. */
static bool put(struct decode *decode, const ProtobufCFieldDescriptor *field, const struct value *value, void *to,
		ProtobufCMessage *earlier)
{
	if (field->type == PROTOBUF_C_TYPE_BOOL) {
		*(protobuf_c_boolean *)to = is_true(value);
		return true;
	}
	if (value->wire_type != member_wire_type(field->type))
		return false;
	switch (field->type) {
	case PROTOBUF_C_TYPE_STRING:
		return put_string(decode, field, value, to);
	case PROTOBUF_C_TYPE_BYTES:
		return put_bytes(decode, field, value, to);
	case PROTOBUF_C_TYPE_MESSAGE:
		return put_message(decode, field, value, to, earlier);
	default:
		put_number(field->type, value->number, to);
		return true;
	}
}

/* ---- members ---- */

static bool put_single(struct decode *decode, ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
		       const struct value *value)
{
	void *to = member_of(message, field);
	ProtobufCMessage *earlier = NULL;

	if (!member_is_of_oneof(field)) {
		if (field->type == PROTOBUF_C_TYPE_MESSAGE)
			earlier = *(ProtobufCMessage **)to;
		return put(decode, field, value, to, earlier);
	}
	if (!put(decode, field, value, to, NULL))
		return false;
	*member_case(message, field) = field->id;
	return true;
}

static bool put_element(struct decode *decode, ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
			const struct value *value)
{
	void *to = member_extend(decode->budget, message, field, 1);
	bool good = to && put(decode, field, value, to, NULL);

	if (good)
		++*member_count(message, field);
	/* A list within this message has told of itself before. */
	if (field->type == PROTOBUF_C_TYPE_MESSAGE)
		decode->n_whole = *member_count(message, field);
	return good;
}

static bool spend(struct decode *decode, size_t n_fields)
{
	if (n_fields > decode->n_fields) {
		decode->has_too_many = true;
		return false;
	}
	decode->n_fields -= n_fields;
	return true;
}

/* The next number of a packed list; what comes after it, or NULL. */
static const uint8_t *take_packed(ProtobufCType type, const uint8_t *at, const uint8_t *end, uint64_t *number)
{
	unsigned wire_type = member_wire_type(type);
	size_t bytes = member_wire_bytes(type);

	if (type == PROTOBUF_C_TYPE_BOOL) {
		*number = *at;
		return *at <= PACKED_BOOL_MAX ? at + 1 : NULL;
	}
	if (wire_type == PROTOBUF_C_WIRE_TYPE_VARINT)
		return take_varint(at, end, VARINT_BYTES_MAX, number);
	if ((size_t)(end - at) < bytes)
		return NULL;
	*number = load(at, bytes);
	return at + bytes;
}

static bool put_packed(struct decode *decode, ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
		       const struct value *value)
{
	const uint8_t *at = value->at;

	if (!spend(decode, (size_t)(value->end - at)))
		return false;
	while (at < value->end) {
		uint64_t number;
		void *to = member_extend(decode->budget, message, field, 1);

		at = to ? take_packed(field->type, at, value->end, &number) : NULL;
		if (!at)
			return false;
		if (field->type == PROTOBUF_C_TYPE_BOOL)
			*(protobuf_c_boolean *)to = (protobuf_c_boolean)number;
		else
			put_number(field->type, number, to);
		++*member_count(message, field);
	}
	return true;
}

static bool put_field(struct decode *decode, ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
		      const struct value *value)
{
	if (!field) {
		if (message == decode->outermost && !decode->unknown)
			decode->unknown = value->id;
		return true;
	}
	if (field->label != PROTOBUF_C_LABEL_REPEATED)
		return put_single(decode, message, field, value);
	if (value->wire_type == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED &&
	    member_wire_type(field->type) != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
		return put_packed(decode, message, field, value);
	return put_element(decode, message, field, value);
}

/* ---- the message ---- */

/* A tag and what belongs to it. False: malformed. */
static inline bool take_value(const uint8_t *at, const uint8_t *end, struct value *value)
{
	uint64_t tag, length;

	/* Field 0. protobuf-c takes it for an unknown one where its tag is written with more bytes than it needs.
	 */
	if (*at < 1 << 3)
		return false;
	at = take_varint(at, end, SHORT_VARINT_BYTES_MAX, &tag);
	if (!at)
		return false;
	value->wire_type = tag & 7;
	value->id = (uint32_t)(tag >> 3);
	value->start = value->at = at;
	switch (value->wire_type) {
	case PROTOBUF_C_WIRE_TYPE_VARINT:
		value->end = take_varint(at, end, VARINT_BYTES_MAX, &value->number);
		return value->end != NULL;
	case PROTOBUF_C_WIRE_TYPE_64BIT:
	case PROTOBUF_C_WIRE_TYPE_32BIT:
		length = value->wire_type == PROTOBUF_C_WIRE_TYPE_64BIT ? 8 : 4;
		if (length > (uint64_t)(end - at))
			return false;
		value->number = load(at, length);
		break;
	case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
		at = value->at = take_varint(at, end, SHORT_VARINT_BYTES_MAX, &length);
		if (!at || length > (uint64_t)(end - at))
			return false;
		break;
	default:
		return false;
	}
	value->end = at + length;
	return true;
}

/* Most types have all numbers from 1 on. */
static inline const ProtobufCFieldDescriptor *find(const ProtobufCMessageDescriptor *type, uint32_t id)
{
	if (id - 1 < type->n_fields && type->fields[id - 1].id == id)
		return &type->fields[id - 1];
	return protobuf_c_message_descriptor_get_field(type, id);
}

ProtobufCMessage *decode_message(struct decode *decode, const ProtobufCMessageDescriptor *type,
				 const uint8_t *bytes, size_t n)
{
	const uint8_t *at = bytes, *end = bytes + n;
	ProtobufCMessage *message = budget_alloc(decode->budget, type->sizeof_message);

	if (!message)
		return NULL;
	protobuf_c_message_init(type, message);
	if (!decode->outermost)
		decode->outermost = message;
	while (at < end) {
		struct value value;

		if (!spend(decode, 1) || !take_value(at, end, &value))
			return NULL;
		if (!put_field(decode, message, find(type, value.id), &value))
			return NULL;
		at = value.end;
	}
	return message;
}
