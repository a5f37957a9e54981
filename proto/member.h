/* Where the members of a protobuf-c message lie, by their descriptors; and lists that grow. */
#ifndef PROTO_MEMBER_H
#define PROTO_MEMBER_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/budget.h"

static inline void *member_at(const ProtobufCMessage *message, unsigned offset)
{
	return (char *)(uintptr_t)message + offset;
}

static inline void *member_of(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	return member_at(message, field->offset);
}

static inline bool member_is_of_oneof(const ProtobufCFieldDescriptor *field)
{
	return field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF;
}

/* Of a oneof's member: the number of the one that is set; 0: none. */
static inline uint32_t *member_case(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	return member_at(message, field->quantifier_offset);
}

/* Of a list: its length. */
static inline size_t *member_count(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	return member_at(message, field->quantifier_offset);
}

/* The wire type that a type's values have, alone. */
static inline unsigned member_wire_type(ProtobufCType type)
{
	switch (type) {
	case PROTOBUF_C_TYPE_SFIXED32:
	case PROTOBUF_C_TYPE_FIXED32:
	case PROTOBUF_C_TYPE_FLOAT:
		return PROTOBUF_C_WIRE_TYPE_32BIT;
	case PROTOBUF_C_TYPE_SFIXED64:
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return PROTOBUF_C_WIRE_TYPE_64BIT;
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_BYTES:
	case PROTOBUF_C_TYPE_MESSAGE:
		return PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
	default:
		return PROTOBUF_C_WIRE_TYPE_VARINT;
	}
}

/* Of a type whose values all have one size there. */
static inline size_t member_wire_bytes(ProtobufCType type)
{
	return member_wire_type(type) == PROTOBUF_C_WIRE_TYPE_64BIT ? 8 : 4;
}

/* What one value takes. */
size_t member_bytes(const ProtobufCFieldDescriptor *field);

/* Room for `more` elements at a list's end, whose length stays. Old elements move where it has to grow, and the
 * place that they leave stays taken: in all, a list takes at most twice what it holds. NULL: the budget ends. */
void *member_extend(struct budget *budget, ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
		    size_t more);

/* The same for any list of `n` elements; `*list` is where they are. */
void *member_extend_list(struct budget *budget, void **list, size_t n, size_t more, size_t element_bytes);

#endif
