/* Random messages as bytes, by a type's descriptor: fields in any order, again and again, packed or not, unknown
 * ones, and now and then a wire type that is not theirs; then broken. */
#ifndef TESTS_PROTO_WIRE_FUZZ_H
#define TESTS_PROTO_WIRE_FUZZ_H

#include <protobuf-c/protobuf-c.h>
#include <stdint.h>
#include <string.h>

enum { WIRE_BYTES_MAX = 4096 };

struct wire {
	uint64_t *random;
	size_t n, room;
	uint8_t bytes[WIRE_BYTES_MAX];
};

static inline uint32_t wire_random(uint64_t *random, uint32_t below)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return (uint32_t)((*random >> 16) % below);
}

static inline void wire_byte(struct wire *wire, unsigned byte)
{
	if (wire->n < wire->room)
		wire->bytes[wire->n++] = (uint8_t)byte;
}

static inline void wire_varint(struct wire *wire, uint64_t value)
{
	for (; value > 0x7f; value >>= 7)
		wire_byte(wire, 0x80 | (value & 0x7f));
	wire_byte(wire, (unsigned)value);
}

static inline void wire_some_varint(struct wire *wire)
{
	uint64_t value = wire_random(wire->random, UINT32_MAX);
	switch (wire_random(wire->random, 6)) {
	case 0: /* with bytes that say nothing, up to one too many */
		for (unsigned i = wire_random(wire->random, 11); i; i--)
			wire_byte(wire, 0x80 | (value & 0x7f));
		wire_byte(wire, value & 3);
		break;
	case 1:
		wire_varint(wire, value << 32 | value);
		break;
	case 2:
		wire_varint(wire, value);
		break;
	default:
		wire_varint(wire, value & 0x7f);
	}
}

/* What came since `mark` gets its length in front. */
static inline void wire_prefix(struct wire *wire, size_t mark)
{
	size_t n = wire->n - mark;
	if (wire->n + 2 > wire->room) {
		wire->n = mark;
		wire_byte(wire, 0);
		return;
	}
	memmove(wire->bytes + mark + 2, wire->bytes + mark, n);
	wire->bytes[mark] = (uint8_t)(0x80 | (n & 0x7f));
	wire->bytes[mark + 1] = (uint8_t)(n >> 7);
	wire->n += 2;
}

static inline void wire_message(struct wire *wire, const ProtobufCMessageDescriptor *type, unsigned depth);

static inline void wire_fixed(struct wire *wire, unsigned bytes)
{
	while (bytes--)
		wire_byte(wire, wire_random(wire->random, 256));
}

static inline void wire_delimited(struct wire *wire, const ProtobufCFieldDescriptor *field, unsigned depth)
{
	size_t mark = wire->n;
	unsigned n = wire_random(wire->random, 6);
	if (field && field->type == PROTOBUF_C_TYPE_MESSAGE)
		wire_message(wire, field->descriptor, depth + 1);
	else if (field && field->label == PROTOBUF_C_LABEL_REPEATED && field->type != PROTOBUF_C_TYPE_STRING &&
		 wire_random(wire->random, 2))
		while (n--)
			wire_some_varint(wire);
	else
		wire_fixed(wire, wire_random(wire->random, 3) ? n * 4 : n);
	wire_prefix(wire, mark);
}

static inline unsigned wire_type_for(ProtobufCType type)
{
	switch (type) {
	case PROTOBUF_C_TYPE_FIXED32:
	case PROTOBUF_C_TYPE_SFIXED32:
	case PROTOBUF_C_TYPE_FLOAT:
		return 5;
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_SFIXED64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return 1;
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_BYTES:
	case PROTOBUF_C_TYPE_MESSAGE:
		return 2;
	default:
		return 0;
	}
}

static inline void wire_field(struct wire *wire, const ProtobufCFieldDescriptor *field, unsigned depth)
{
	unsigned type = field ? wire_type_for(field->type) : wire_random(wire->random, 3);
	uint32_t id = field ? field->id : 1 + wire_random(wire->random, 100000);
	if (field && field->label == PROTOBUF_C_LABEL_REPEATED && type != 2 && wire_random(wire->random, 2))
		type = 2;
	if (!wire_random(wire->random, 150))
		type = wire_random(wire->random, 6);
	wire_varint(wire, (uint64_t)id << 3 | type);
	if (type == 0)
		wire_some_varint(wire);
	else if (type == 2)
		wire_delimited(wire, field, depth);
	else
		wire_fixed(wire, type == 1 ? 8 : 4);
}

static inline void wire_message(struct wire *wire, const ProtobufCMessageDescriptor *type, unsigned depth)
{
	const ProtobufCFieldDescriptor *field = NULL;
	for (unsigned n = wire_random(wire->random, depth ? 5 : 4); n; n--) {
		/* The same once more is what merges. */
		if (!field || wire_random(wire->random, 3))
			field = type->n_fields && wire_random(wire->random, 20)
					? &type->fields[wire_random(wire->random, type->n_fields)]
					: NULL;
		wire_field(wire, field, depth);
	}
}

static inline void wire_break(struct wire *wire)
{
	for (unsigned n = wire_random(wire->random, 4); n && wire->n; n--) {
		size_t at = wire_random(wire->random, (uint32_t)wire->n);
		switch (wire_random(wire->random, 5)) {
		case 0:
			wire->bytes[at] ^= (uint8_t)(1 << wire_random(wire->random, 8));
			break;
		case 1:
			wire->bytes[at] = (uint8_t)wire_random(wire->random, 256);
			break;
		case 2:
			wire->n = at;
			break;
		case 3:
			memmove(wire->bytes + at, wire->bytes + at + 1, --wire->n - at);
			break;
		default:
			wire->bytes[at] = wire_random(wire->random, 2) ? 0xff : 0x80;
		}
	}
}

#endif
