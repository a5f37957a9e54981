/* A walk over tags and lengths. It never refuses: what is malformed is for the unpacking to say.
 * It goes as deep as the types are nested; none of them contains itself. */
#include "proto/fields.h"

#include <stdint.h>

struct walk {
	const uint8_t *at, *end;
	size_t left; /* fields that may still come */
};

/* False where it is cut off or too long. */
static bool take_varint(struct walk *walk, uint64_t *value)
{
	*value = 0;
	for (unsigned shift = 0; shift < 64 && walk->at < walk->end; shift += 7) {
		uint8_t byte = *walk->at++;

		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return true;
	}
	return false;
}

static bool skip(struct walk *walk, uint64_t bytes)
{
	if (bytes > (uint64_t)(walk->end - walk->at))
		return false;
	walk->at += bytes;
	return true;
}

static bool is_list_of_numbers(const ProtobufCFieldDescriptor *field)
{
	return field && field->label == PROTOBUF_C_LABEL_REPEATED && field->type != PROTOBUF_C_TYPE_STRING &&
	       field->type != PROTOBUF_C_TYPE_BYTES && field->type != PROTOBUF_C_TYPE_MESSAGE;
}

static bool spend(struct walk *walk, uint64_t fields)
{
	if (fields > walk->left)
		return false;
	walk->left -= (size_t)fields;
	return true;
}

static bool within(const ProtobufCMessageDescriptor *type, struct walk *walk);

/* What has a length: false where the fields are too many; a length that is too long ends the walk. */
static bool within_delimited(const ProtobufCFieldDescriptor *field, struct walk *walk)
{
	struct walk inner = *walk;
	uint64_t bytes;
	bool good;

	if (!take_varint(walk, &bytes) || bytes > (uint64_t)(walk->end - walk->at)) {
		walk->at = walk->end;
		return true;
	}
	if (is_list_of_numbers(field) && !spend(walk, bytes))
		return false;
	if (field && field->type == PROTOBUF_C_TYPE_MESSAGE) {
		inner.at = walk->at;
		inner.end = walk->at + bytes;
		good = within(field->descriptor, &inner);
		walk->left = inner.left;
		if (!good)
			return false;
	}
	walk->at += bytes;
	return true;
}

static bool within(const ProtobufCMessageDescriptor *type, struct walk *walk)
{
	while (walk->at < walk->end) {
		uint64_t tag, ignored;
		bool whole = false;

		if (!take_varint(walk, &tag))
			return true;
		if (!spend(walk, 1))
			return false;
		switch (tag & 7) {
		case PROTOBUF_C_WIRE_TYPE_VARINT:
			whole = take_varint(walk, &ignored);
			break;
		case PROTOBUF_C_WIRE_TYPE_64BIT:
			whole = skip(walk, 8);
			break;
		case PROTOBUF_C_WIRE_TYPE_32BIT:
			whole = skip(walk, 4);
			break;
		case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
			whole = true;
			if (!within_delimited(protobuf_c_message_descriptor_get_field(type, (unsigned)(tag >> 3)),
					      walk))
				return false;
			break;
		}
		if (!whole)
			return true;
	}
	return true;
}

bool fields_within(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t n, size_t most)
{
	struct walk walk = {bytes, bytes + n, most};

	/* A field takes two bytes, and a number of a packed list one. */
	return n <= most || within(type, &walk);
}
