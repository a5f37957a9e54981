/* A message as the list of its fields' bytes. One of them is changed: a submessage by going into it, a value by
 * one that means something to the daemon, or the list is. What does not fit any more is left as it was. */
#include "tests/fuzz/mutate.h"

#include <string.h>

#include "tests/unit/proto/wire_fuzz.h"

enum { FIELDS_MAX = 256 };

struct field {
	uint32_t number;
	unsigned wire_type;
	const uint8_t *begin, *value, *end; /* with its tag; its value, without a length; the end of both */
};

static const char *const words[] = {
	"a0",	   "a1",       "a2",	     "b0",	    "b1",      "b2",	    "b3",
	"b4",	   "bv",       "c0",	     "1001:a0",	    "1001:a1", "1001:a2",   "1002:b0",
	"1002:b1", "in",       "in1",	     "in2",	    "in0",     "out",	    "weights",
	"bias",	   "",	       "slope",	     "in3",	    "table",   "freed",	    "sealed",
	"moved",   "damaged",  "progress",   "allocated",   "refused", "low-space", "client-gone",
	"conv2d",  "relu",     "weights_in", "weights_out", "cell",    "prev_out",  "state",
	"luts",	   "rnn_bias", "x",	     "acc"};

/* ---- reading ---- */

static const uint8_t *read_varint(const uint8_t *at, const uint8_t *end, uint64_t *value)
{
	*value = 0;
	for (unsigned shift = 0; at < end && shift < 70; shift += 7) {
		uint8_t byte = *at++;

		*value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
		if (!(byte & 0x80))
			return at;
	}
	return NULL;
}

static const uint8_t *read_field(const uint8_t *at, const uint8_t *end, struct field *field)
{
	uint64_t tag, n = 0;

	field->begin = at;
	at = read_varint(at, end, &tag);
	if (!at)
		return NULL;
	field->number = (uint32_t)(tag >> 3);
	field->wire_type = tag & 7;
	field->value = at;
	if (field->wire_type == 0) {
		at = read_varint(at, end, &n);
		n = 0;
	} else if (field->wire_type == 2) {
		at = read_varint(at, end, &n);
		field->value = at;
	} else if (field->wire_type == 1 || field->wire_type == 5) {
		n = field->wire_type == 1 ? 8 : 4;
	} else {
		return NULL;
	}
	if (!at || n > (size_t)(end - at))
		return NULL;
	field->end = at + n;
	return field->end;
}

/* -1: not a message, or one of too many fields. */
static int read_fields(const uint8_t *bytes, size_t n, struct field *fields)
{
	const uint8_t *at = bytes, *end = bytes + n;
	int count = 0;

	while (at < end) {
		if (count == FIELDS_MAX)
			return -1;
		at = read_field(at, end, &fields[count++]);
		if (!at)
			return -1;
	}
	return count;
}

/* ---- writing ---- */

static void copy(struct wire *out, const uint8_t *from, const uint8_t *to)
{
	while (from < to)
		wire_byte(out, *from++);
}

static void put_delimited(struct wire *out, uint32_t number, const void *bytes, size_t n)
{
	wire_varint(out, (uint64_t)number << 3 | 2);
	wire_varint(out, n);
	copy(out, bytes, (const uint8_t *)bytes + n);
}

/* Small numbers most of all, then those where types, blocks and sizes end. */
static uint64_t some_number(uint64_t *random)
{
	static const int64_t edges[] = {127,	   128,	      255,	  256,	     511,	512,
					1023,	   1024,      4096,	  8192,	     65535,	65536,
					INT32_MAX, INT32_MIN, UINT32_MAX, INT64_MAX, INT64_MIN, 1LL << 30,
					1LL << 40, 1LL << 62, 16384,	  -128,	     -32768};

	switch (wire_random(random, 4)) {
	case 0:
		return (uint64_t)edges[wire_random(random, sizeof(edges) / sizeof(edges[0]))] +
		       wire_random(random, 3) - 1;
	case 1:
		return wire_random(random, 200);
	default:
		return wire_random(random, 12);
	}
}

static void put_number(struct wire *out, const ProtobufCFieldDescriptor *field)
{
	uint64_t value = some_number(out->random);

	if (field->type == PROTOBUF_C_TYPE_SINT64 || field->type == PROTOBUF_C_TYPE_SINT32)
		value = value << 1 ^ (uint64_t)((int64_t)value >> 63);
	if (field->type == PROTOBUF_C_TYPE_ENUM && wire_random(out->random, 8)) {
		const ProtobufCEnumDescriptor *type = field->descriptor;

		value = (uint64_t)type->values[wire_random(out->random, type->n_values)].value;
	}
	if (field->type == PROTOBUF_C_TYPE_BOOL)
		value &= 1;
	wire_varint(out, value);
}

static void put_value(struct wire *out, const ProtobufCFieldDescriptor *field)
{
	unsigned type = wire_type_for(field->type);
	const char *word = words[wire_random(out->random, sizeof(words) / sizeof(words[0]))];

	if (field->type == PROTOBUF_C_TYPE_STRING) {
		put_delimited(out, field->id, word, strlen(word));
		return;
	}
	if (type == 2) {
		wire_field(out, field, 1);
		return;
	}
	wire_varint(out, (uint64_t)field->id << 3 | type);
	if (type == 0) {
		put_number(out, field);
		return;
	}
	/* A handle: a small index, of a young slot. */
	for (unsigned i = 0; i < (type == 1 ? 8 : 4); i++)
		wire_byte(out, i == 0 ? wire_random(out->random, 16) : i == 4 ? !wire_random(out->random, 3) : 0);
}

/* ---- changing ---- */

static size_t change(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t n, struct wire *out,
		     unsigned depth);

static void change_field(const ProtobufCMessageDescriptor *type, const struct field *field, struct wire *out,
			 unsigned depth)
{
	const ProtobufCFieldDescriptor *known = protobuf_c_message_descriptor_get_field(type, field->number);
	static struct wire inner[8];

	if (known && known->type == PROTOBUF_C_TYPE_MESSAGE && field->wire_type == 2 && depth < 8) {
		inner[depth].random = out->random;
		inner[depth].n = 0;
		inner[depth].room = WIRE_BYTES_MAX;
		change(known->descriptor, field->value, (size_t)(field->end - field->value), &inner[depth],
		       depth + 1);
		put_delimited(out, field->number, inner[depth].bytes, inner[depth].n);
	} else if (known && known->type == PROTOBUF_C_TYPE_BYTES && field->end > field->value) {
		size_t n = (size_t)(field->end - field->value);

		/* A payload of another length, or with one byte changed. */
		if (wire_random(out->random, 2))
			n = wire_random(out->random, (uint32_t)n) + wire_random(out->random, 2);
		put_delimited(out, field->number, field->value, n);
		if (n && out->n)
			out->bytes[out->n - 1 - wire_random(out->random, (uint32_t)(n < out->n ? n : out->n))] =
				(uint8_t)wire_random(out->random, 256);
	} else if (known) {
		put_value(out, known);
	} else {
		copy(out, field->begin, field->end);
	}
}

static void add_field(const ProtobufCMessageDescriptor *type, struct wire *out)
{
	if (type->n_fields)
		put_value(out, &type->fields[wire_random(out->random, type->n_fields)]);
}

static size_t change(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t n, struct wire *out,
		     unsigned depth)
{
	struct field fields[FIELDS_MAX];
	int count = read_fields(bytes, n, fields), at;
	unsigned what = wire_random(out->random, 12);

	if (count <= 0) {
		wire_message(out, type, depth);
		return out->n;
	}
	at = (int)wire_random(out->random, (uint32_t)count);
	for (int i = 0; i < count; i++) {
		if (i != at || what >= 4) {
			if (i == at && what < 10)
				change_field(type, &fields[i], out, depth);
			else
				copy(out, fields[i].begin, fields[i].end);
		} else if (what == 1) { /* once more */
			copy(out, fields[i].begin, fields[i].end);
			copy(out, fields[i].begin, fields[i].end);
		} else if (what == 2) { /* two in the place of one */
			change_field(type, &fields[i], out, depth);
			copy(out, fields[i].begin, fields[i].end);
		} else if (what == 3) {
			copy(out, fields[i].begin, fields[i].end);
			add_field(type, out);
		} /* 0: gone */
	}
	if (what >= 10)
		add_field(type, out);
	return out->n;
}

size_t mutate_message(const ProtobufCMessageDescriptor *type, uint8_t *bytes, size_t n, size_t room,
		      uint64_t *random)
{
	static struct wire out;

	out.random = random;
	out.n = 0;
	out.room = room < WIRE_BYTES_MAX ? room : WIRE_BYTES_MAX;
	change(type, bytes, n, &out, 0);
	memcpy(bytes, out.bytes, out.n);
	return out.n;
}
