/* Invariant: what is read is in its message only when it is whole, so that this can be freed at any time.
 * No message of the wire holds one of its own type: what is nested is no deeper than they are. */
#include "client/lib/json/json_read.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/json/json.h"
#include "client/lib/json/json_token.h"

enum { FIELDS_MAX = 64, KNOWN_BYTES = 400 };

struct reading {
	struct json_reader reader;
	ProtobufCAllocator *allocator;
};

union value {
	int32_t enumerator;
	protobuf_c_boolean truth;
	uint32_t narrow;
	uint64_t wide;
	int64_t integer;
	double real;
	char *text;
	ProtobufCBinaryData bytes;
	ProtobufCMessage *message;
};

static void *allocate(struct reading *reading, size_t bytes)
{
	return reading->allocator->alloc(reading->allocator->allocator_data, bytes);
}

static void release(struct reading *reading, void *memory)
{
	reading->allocator->free(reading->allocator->allocator_data, memory);
}

static int no_memory(struct reading *reading)
{
	return npumem_error_set(reading->reader.error, NPUMEM_RESOURCE_EXHAUSTED,
				"no memory in this process for the request");
}

static int read_object(struct reading *reading, const ProtobufCMessageDescriptor *type, ProtobufCMessage **out);

/* ---- numbers ---- */

static int read_signed(struct reading *reading, int64_t low, int64_t high, int64_t *value)
{
	char word[JSON_WORD_BYTES], *end;
	int status = json_token_number(&reading->reader, word);
	if (status)
		return status;
	errno = 0;
	*value = strtoll(word, &end, 10);
	if (word[strspn(word, "-0123456789")] || *end || end == word)
		return json_token_fail(&reading->reader, "\"%s\" is no integer", word);
	if (errno || *value < low || *value > high)
		return json_token_fail(&reading->reader, "%s is not %lld to %lld", word, (long long)low,
				       (long long)high);
	return 0;
}

static int read_unsigned(struct reading *reading, uint64_t *value)
{
	char word[JSON_WORD_BYTES], *end;
	int status = json_token_number(&reading->reader, word);
	if (status)
		return status;
	errno = 0;
	*value = strtoull(word, &end, 10);
	if (word[strspn(word, "-0123456789")] || *end || end == word)
		return json_token_fail(&reading->reader, "\"%s\" is no integer", word);
	if (errno || word[0] == '-')
		return json_token_fail(&reading->reader, "%s is not 0 to 2^64 - 1", word);
	return 0;
}

static int read_narrow(struct reading *reading, uint32_t *value)
{
	int64_t wide = 0;
	int status = read_signed(reading, 0, UINT32_MAX, &wide);
	*value = (uint32_t)wide;
	return status;
}

static int read_real(struct reading *reading, double *value)
{
	char word[JSON_WORD_BYTES], *end;
	int status = json_token_number(&reading->reader, word);
	if (status)
		return status;
	*value = !strcmp(word, "NaN") ? (double)NAN : !strcmp(word, "Infinity") ? INFINITY : -INFINITY;
	if (!strcmp(word, "NaN") || !strcmp(word, "Infinity") || !strcmp(word, "-Infinity"))
		return 0;
	*value = strtod(word, &end);
	if (word[strspn(word, "+-.0123456789eE")] || *end || end == word || !isfinite(*value))
		return json_token_fail(&reading->reader, "\"%s\" is no number", word);
	return 0;
}

/* ---- the others ---- */

/* The names of an enumeration, for a refusal. */
static const char *known_values(const ProtobufCEnumDescriptor *type, char text[KNOWN_BYTES])
{
	size_t used = 0;
	text[0] = 0;
	for (unsigned i = 0; i < type->n_values && used < KNOWN_BYTES - JSON_WORD_BYTES; i++)
		used += (size_t)snprintf(text + used, KNOWN_BYTES - used, "%s%.60s", i ? ", " : "",
					 type->values[i].name);
	return text;
}

static int read_enum(struct reading *reading, const ProtobufCEnumDescriptor *type, int32_t *value)
{
	const ProtobufCEnumValue *row;
	char word[JSON_WORD_BYTES], known[KNOWN_BYTES];
	size_t n;
	if (json_token_peek(&reading->reader) != '"') {
		int64_t number = 0;
		int status = read_signed(reading, INT32_MIN, INT32_MAX, &number);
		*value = (int32_t)number;
		return status;
	}
	int status = json_token_string(&reading->reader, word, sizeof(word), &n);
	if (status)
		return status;
	row = protobuf_c_enum_descriptor_get_value_by_name(type, word);
	if (!row)
		return json_token_fail(&reading->reader, "%s is none of %s", word, known_values(type, known));
	*value = row->value;
	return 0;
}

static int read_truth(struct reading *reading, protobuf_c_boolean *value)
{
	*value = json_token_word(&reading->reader, "true");
	if (*value || json_token_word(&reading->reader, "false"))
		return 0;
	return json_token_fail(&reading->reader, "is neither true nor false");
}

static int read_text(struct reading *reading, char **text, size_t *n)
{
	size_t room = json_token_string_room(&reading->reader);
	*text = allocate(reading, room ? room : 1);
	if (!*text)
		return no_memory(reading);
	int status = json_token_string(&reading->reader, *text, room, n);
	if (status)
		release(reading, *text);
	return status;
}

static int base64_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

/* RFC 4648: takes + and / or - and _, with padding or without. How many bytes they are, or -1: they are no base64,
 * and `to`, which may be `text`, may have changed. */
static long get_base64(const char *text, size_t n, uint8_t *to)
{
	uint32_t word = 0;
	size_t used = 0, padding = 0;
	while (n && padding < 2 && text[n - 1] == '=') {
		n--;
		padding++;
	}
	if (n % 4 == 1 || (padding && (n + padding) % 4))
		return -1;
	for (size_t i = 0; i < n; i++) {
		int value = base64_value(text[i]);
		if (value < 0)
			return -1;
		word = word << 6 | (uint32_t)value;
		if (i % 4)
			to[used++] = (uint8_t)(word >> (6 - i % 4 * 2));
	}
	/* Bits that no byte has are zero: each value has one text. */
	if ((n % 4 == 2 && word & 15) || (n % 4 == 3 && word & 3))
		return -1;
	return (long)used;
}

static int read_bytes(struct reading *reading, ProtobufCBinaryData *bytes)
{
	char *text;
	size_t n;
	int status = read_text(reading, &text, &n);
	if (status)
		return status;
	long decoded = get_base64(text, n, (uint8_t *)text);
	if (decoded < 0) {
		release(reading, text);
		return json_token_fail(&reading->reader, "is no base64");
	}
	*bytes = (ProtobufCBinaryData){(size_t)decoded, (uint8_t *)text};
	return 0;
}

static int read_value(struct reading *reading, const ProtobufCFieldDescriptor *field, union value *value)
{
	size_t n;
	switch (field->type) {
	case PROTOBUF_C_TYPE_ENUM:
		return read_enum(reading, field->descriptor, &value->enumerator);
	case PROTOBUF_C_TYPE_BOOL:
		return read_truth(reading, &value->truth);
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
		return read_narrow(reading, &value->narrow);
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		return read_unsigned(reading, &value->wide);
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
		return read_signed(reading, INT64_MIN, INT64_MAX, &value->integer);
	case PROTOBUF_C_TYPE_DOUBLE:
		return read_real(reading, &value->real);
	case PROTOBUF_C_TYPE_STRING:
		return read_text(reading, &value->text, &n);
	case PROTOBUF_C_TYPE_BYTES:
		return read_bytes(reading, &value->bytes);
	case PROTOBUF_C_TYPE_MESSAGE:
		return read_object(reading, field->descriptor, &value->message);
	default:
		return json_token_fail(&reading->reader, "is of a type that has no JSON here");
	}
}

/* ---- lists ---- */

static bool grow(struct reading *reading, uint8_t **list, size_t n, size_t bytes)
{
	/* At 1, 2, 4, … elements. */
	if (n & (n - 1))
		return true;
	uint8_t *grown = allocate(reading, (n ? 2 * n : 1) * bytes);
	if (!grown)
		return false;
	if (n)
		memcpy(grown, *list, n * bytes);
	if (n)
		release(reading, *list);
	*list = grown;
	return true;
}

static int read_element(struct reading *reading, ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
			size_t *n)
{
	uint8_t **list = (uint8_t **)(void *)((uint8_t *)message + field->offset);
	size_t bytes = json_value_bytes(field), up;
	union value value;
	if (!grow(reading, list, *n, bytes))
		return no_memory(reading);
	up = json_token_down(&reading->reader, NULL, *n);
	int status = read_value(reading, field, &value);
	if (status)
		return status;
	json_token_up(&reading->reader, up);
	memcpy(*list + (*n)++ * bytes, &value, bytes);
	return 0;
}

static int read_list(struct reading *reading, ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	size_t *n = (size_t *)(void *)((uint8_t *)message + field->quantifier_offset);
	int status = json_token_expect(&reading->reader, '[');
	if (status || json_token_take(&reading->reader, ']'))
		return status;
	do
		status = read_element(reading, message, field, n);
	while (!status && json_token_take(&reading->reader, ','));
	return status ? status : json_token_expect(&reading->reader, ']');
}

/* ---- objects ---- */

static int refuse_name(struct reading *reading, const ProtobufCMessageDescriptor *type, const char *name)
{
	char known[KNOWN_BYTES] = "none";
	size_t used = 0;
	for (unsigned i = 0; i < type->n_fields && used < KNOWN_BYTES - JSON_WORD_BYTES; i++)
		used += (size_t)snprintf(known + used, KNOWN_BYTES - used, "%s%.60s", i ? ", " : "",
					 type->fields[i].name);
	return json_token_fail(&reading->reader, "no member is called \"%s\"; there are: %s", name, known);
}

/* The member of a oneof that is there already, or NULL. */
static const char *rival_of(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	const ProtobufCFieldDescriptor *rival;
	uint32_t id;
	if (!(field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF))
		return NULL;
	memcpy(&id, (const uint8_t *)message + field->quantifier_offset, sizeof(id));
	rival = id ? protobuf_c_message_descriptor_get_field(message->descriptor, id) : NULL;
	return rival ? rival->name : NULL;
}

static int read_field(struct reading *reading, ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	uint8_t *base = (uint8_t *)message;
	const char *rival = rival_of(message, field);
	union value value;
	if (json_token_word(&reading->reader, "null"))
		return 0;
	if (rival)
		return json_token_fail(&reading->reader, "is given beside %s, and only one of them may be", rival);
	if (field->label == PROTOBUF_C_LABEL_REPEATED)
		return read_list(reading, message, field);
	int status = read_value(reading, field, &value);
	if (status)
		return status;
	memcpy(base + field->offset, &value, json_value_bytes(field));
	if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
		memcpy(base + field->quantifier_offset, &field->id, sizeof(field->id));
	return 0;
}

static int read_member(struct reading *reading, ProtobufCMessage *message, bool seen[FIELDS_MAX])
{
	struct json_reader *reader = &reading->reader;
	const ProtobufCMessageDescriptor *type = message->descriptor;
	char name[JSON_WORD_BYTES];
	size_t n, up;
	int status = json_token_string(reader, name, sizeof(name), &n);
	if (status)
		return status;
	const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field_by_name(type, name);
	if (!field)
		return refuse_name(reading, type, name);
	up = json_token_down(reader, name, 0);
	if (seen[field - type->fields])
		return json_token_fail(reader, "is given twice");
	seen[field - type->fields] = true;
	status = json_token_expect(reader, ':');
	if (!status)
		status = read_field(reading, message, field);
	if (!status)
		json_token_up(reader, up);
	return status;
}

static int read_members(struct reading *reading, ProtobufCMessage *message)
{
	bool seen[FIELDS_MAX] = {false};
	int status = json_token_expect(&reading->reader, '{');
	if (status || json_token_take(&reading->reader, '}'))
		return status;
	do
		status = read_member(reading, message, seen);
	while (!status && json_token_take(&reading->reader, ','));
	return status ? status : json_token_expect(&reading->reader, '}');
}

static int read_object(struct reading *reading, const ProtobufCMessageDescriptor *type, ProtobufCMessage **out)
{
	ProtobufCMessage *message = allocate(reading, type->sizeof_message);
	assert(type->n_fields <= FIELDS_MAX);
	*out = NULL;
	if (!message)
		return no_memory(reading);
	type->message_init(message);
	int status = read_members(reading, message);
	if (status)
		protobuf_c_message_free_unpacked(message, reading->allocator);
	else
		*out = message;
	return status;
}

int json_read(const char *text, const ProtobufCMessageDescriptor *type, ProtobufCAllocator *allocator,
	      ProtobufCMessage **out, struct npumem_error *error)
{
	struct reading reading = {.reader = {.text = text, .at = text, .error = error}, .allocator = allocator};
	int status = read_object(&reading, type, out);
	if (!status)
		status = json_token_expect(&reading.reader, 0);
	if (status && *out) {
		protobuf_c_message_free_unpacked(*out, allocator);
		*out = NULL;
	}
	return status;
}
