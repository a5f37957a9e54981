/* Lists are as long as a power of two, so that their room needs no member of its own. */
#include "proto/member.h"

#include <string.h>

enum { LEAST_ROOM = 4 };

size_t member_bytes(const ProtobufCFieldDescriptor *field)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return sizeof(uint64_t);
	case PROTOBUF_C_TYPE_BOOL:
		return sizeof(protobuf_c_boolean);
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_MESSAGE:
		return sizeof(void *);
	case PROTOBUF_C_TYPE_BYTES:
		return sizeof(ProtobufCBinaryData);
	default:
		return sizeof(uint32_t);
	}
}

/* Of a list of n elements; n is at most SIZE_MAX / 2, as each has a byte in memory. */
static size_t room_of(size_t n)
{
	size_t room = LEAST_ROOM;

	if (!n)
		return 0;
	while (room < n)
		room *= 2;
	return room;
}

void *member_extend_list(struct budget *budget, void **list, size_t n, size_t more, size_t element_bytes)
{
	size_t bytes;
	char *longer;

	if (room_of(n) < n + more) {
		if (__builtin_mul_overflow(room_of(n + more), element_bytes, &bytes))
			return NULL;
		longer = budget_alloc(budget, bytes);
		if (!longer)
			return NULL;
		if (n)
			memcpy(longer, *list, n * element_bytes);
		*list = longer;
	}
	return (char *)*list + n * element_bytes;
}

void *member_extend(struct budget *budget, ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
		    size_t more)
{
	return member_extend_list(budget, member_of(message, field), *member_count(message, field), more,
				  member_bytes(field));
}
