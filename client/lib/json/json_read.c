/* By the descriptors that protoc-c generates. Invariant: a value is in its message only when it is complete, so
 * that the message can be freed at any time. */
#include "client/lib/json/json.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 200, KNOWN_BYTES = 400, WORD_BYTES = 64 };

struct reading {
	ProtobufCAllocator *allocator;
	struct npumem_error *error; /* may be NULL */
	/* The member that is read: "tensors[0].spec.dtype". Cut where it is too long. */
	char path[PATH_BYTES];
	size_t path_bytes;
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
	return npumem_error_set(reading->error, NPUMEM_RESOURCE_EXHAUSTED,
				"no memory in this process for the request");
}

/* Always returns NPUMEM_INVALID. */
static int __attribute__((format(printf, 2, 3))) refuse(struct reading *reading, const char *format, ...)
{
	char message[NPUMEM_MESSAGE_BYTES];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	npumem_error_set(reading->error, NPUMEM_INVALID, "%s: %s",
			 reading->path_bytes ? reading->path : "the request", message);
	npumem_error_text(reading->error, "field", reading->path);
	return NPUMEM_INVALID;
}

/* Adds ".name" to the path, or "[index]" where `name` is NULL. Returns the path's length before, for `leave`. */
static size_t enter(struct reading *reading, const char *name, size_t index)
{
	size_t before = reading->path_bytes, room = sizeof(reading->path) - before;
	char *to = reading->path + before;
	int n = name ? snprintf(to, room, "%s%s", before ? "." : "", name) : snprintf(to, room, "[%zu]", index);
	reading->path_bytes += (size_t)n < room ? (size_t)n : room - 1;
	return before;
}

static void leave(struct reading *reading, size_t path_bytes)
{
	reading->path_bytes = path_bytes;
	reading->path[path_bytes] = 0;
}

static int read_object(struct reading *reading, const json_t *from, const ProtobufCMessageDescriptor *type,
		       ProtobufCMessage **out);

/* ---- numbers ---- */

/* The digits of an integer, which may stand in quotes; jansson has none above 2^63 - 1 without. */
static const char *integer_word(const json_t *from, char word[WORD_BYTES])
{
	if (json_is_integer(from))
		snprintf(word, WORD_BYTES, "%" JSON_INTEGER_FORMAT, json_integer_value(from));
	else
		snprintf(word, WORD_BYTES, "%s",
			 json_string_length(from) < WORD_BYTES ? json_string_value(from) : "");
	return word[strspn(word, "-0123456789")] ? "" : word;
}

static int read_signed(struct reading *reading, const json_t *from, int64_t low, int64_t high, int64_t *value)
{
	char buffer[WORD_BYTES], *end;
	const char *word = integer_word(from, buffer);
	errno = 0;
	*value = strtoll(word, &end, 10);
	if (*end || end == word)
		return refuse(reading, "an integer is expected");
	if (errno || *value < low || *value > high)
		return refuse(reading, "%s is not %lld to %lld", word, (long long)low, (long long)high);
	return 0;
}

static int read_unsigned(struct reading *reading, const json_t *from, uint64_t *value)
{
	char buffer[WORD_BYTES], *end;
	const char *word = integer_word(from, buffer);
	errno = 0;
	*value = strtoull(word, &end, 10);
	if (*end || end == word)
		return refuse(reading, "an integer is expected");
	if (errno || word[0] == '-')
		return refuse(reading, "%s is not 0 to 2^64 - 1", word);
	return 0;
}

static int read_real(struct reading *reading, const json_t *from, double *value)
{
	static const struct {
		const char *word;
		double value;
	} words[] = {{"NaN", (double)NAN}, {"Infinity", INFINITY}, {"-Infinity", -INFINITY}};
	const char *text = json_string_value(from);
	char *end;
	*value = json_number_value(from);
	if (json_is_number(from))
		return 0;
	for (unsigned i = 0; text && i < sizeof(words) / sizeof(*words); i++) {
		*value = words[i].value;
		if (!strcmp(text, words[i].word))
			return 0;
	}
	*value = text ? strtod(text, &end) : 0;
	if (!text || text[strspn(text, "+-.0123456789eE")] || *end || end == text || !isfinite(*value))
		return refuse(reading, "a number is expected");
	return 0;
}

/* ---- the others ---- */

/* The names of an enumeration, for a refusal. */
static const char *known_values(const ProtobufCEnumDescriptor *type, char text[KNOWN_BYTES])
{
	size_t used = 0;
	text[0] = 0;
	for (unsigned i = 0; i < type->n_values && used < KNOWN_BYTES - WORD_BYTES; i++)
		used += (size_t)snprintf(text + used, KNOWN_BYTES - used, "%s%.60s", i ? ", " : "",
					 type->values[i].name);
	return text;
}

static int read_enum(struct reading *reading, const json_t *from, const ProtobufCEnumDescriptor *type,
		     int32_t *value)
{
	const char *word = json_string_value(from);
	const ProtobufCEnumValue *row = word ? protobuf_c_enum_descriptor_get_value_by_name(type, word) : NULL;
	char known[KNOWN_BYTES];
	int64_t number = 0;
	if (word && !row)
		return refuse(reading, "%.60s is not one of %s", word, known_values(type, known));
	int status = row ? 0 : read_signed(reading, from, INT32_MIN, INT32_MAX, &number);
	*value = row ? row->value : (int32_t)number;
	return status;
}

/* Copies the string, with its zero byte. */
static int read_text(struct reading *reading, const json_t *from, char **text)
{
	if (!json_is_string(from))
		return refuse(reading, "a string is expected");
	size_t bytes = json_string_length(from) + 1;
	*text = allocate(reading, bytes);
	if (!*text)
		return no_memory(reading);
	memcpy(*text, json_string_value(from), bytes);
	return 0;
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

static int read_bytes(struct reading *reading, const json_t *from, ProtobufCBinaryData *bytes)
{
	char *text;
	int status = read_text(reading, from, &text);
	if (status)
		return status;
	long decoded = get_base64(text, json_string_length(from), (uint8_t *)text);
	if (decoded < 0) {
		release(reading, text);
		return refuse(reading, "base64 is expected");
	}
	*bytes = (ProtobufCBinaryData){(size_t)decoded, (uint8_t *)text};
	return 0;
}

static int read_value(struct reading *reading, const json_t *from, const ProtobufCFieldDescriptor *field,
		      union value *value)
{
	int64_t narrow = 0;
	int status;
	switch (field->type) {
	case PROTOBUF_C_TYPE_ENUM:
		return read_enum(reading, from, field->descriptor, &value->enumerator);
	case PROTOBUF_C_TYPE_BOOL:
		value->truth = json_is_true(from);
		return json_is_boolean(from) ? 0 : refuse(reading, "true or false is expected");
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
		status = read_signed(reading, from, 0, UINT32_MAX, &narrow);
		value->narrow = (uint32_t)narrow;
		return status;
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		return read_unsigned(reading, from, &value->wide);
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
		return read_signed(reading, from, INT64_MIN, INT64_MAX, &value->integer);
	case PROTOBUF_C_TYPE_DOUBLE:
		return read_real(reading, from, &value->real);
	case PROTOBUF_C_TYPE_STRING:
		return read_text(reading, from, &value->text);
	case PROTOBUF_C_TYPE_BYTES:
		return read_bytes(reading, from, &value->bytes);
	case PROTOBUF_C_TYPE_MESSAGE:
		return read_object(reading, from, field->descriptor, &value->message);
	default:
		return refuse(reading, "JSON has no value of this type");
	}
}

static int read_list(struct reading *reading, const json_t *from, ProtobufCMessage *message,
		     const ProtobufCFieldDescriptor *field)
{
	uint8_t **list = (uint8_t **)(void *)((uint8_t *)message + field->offset);
	size_t *n = (size_t *)(void *)((uint8_t *)message + field->quantifier_offset);
	size_t bytes = json_value_bytes(field), length = json_array_size(from);
	if (!json_is_array(from))
		return refuse(reading, "a list is expected");
	*list = length ? allocate(reading, length * bytes) : NULL;
	if (length && !*list)
		return no_memory(reading);
	for (; *n < length; (*n)++) {
		union value value;
		size_t up = enter(reading, NULL, *n);
		int status = read_value(reading, json_array_get(from, *n), field, &value);
		if (status)
			return status;
		leave(reading, up);
		memcpy(*list + *n * bytes, &value, bytes);
	}
	return 0;
}

/* ---- objects ---- */

static int refuse_name(struct reading *reading, const ProtobufCMessageDescriptor *type, const char *name)
{
	char known[KNOWN_BYTES] = "none";
	size_t used = 0;
	for (unsigned i = 0; i < type->n_fields && used < KNOWN_BYTES - WORD_BYTES; i++)
		used += (size_t)snprintf(known + used, KNOWN_BYTES - used, "%s%.60s", i ? ", " : "",
					 type->fields[i].name);
	return refuse(reading, "no member is called \"%.60s\"; there are: %s", name, known);
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

static int read_field(struct reading *reading, const json_t *from, ProtobufCMessage *message,
		      const ProtobufCFieldDescriptor *field)
{
	uint8_t *base = (uint8_t *)message;
	const char *rival = rival_of(message, field);
	union value value;
	if (json_is_null(from))
		return 0;
	if (rival)
		return refuse(reading, "is given beside %s, and only one of them may be", rival);
	if (field->label == PROTOBUF_C_LABEL_REPEATED)
		return read_list(reading, from, message, field);
	int status = read_value(reading, from, field, &value);
	if (status)
		return status;
	memcpy(base + field->offset, &value, json_value_bytes(field));
	if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
		memcpy(base + field->quantifier_offset, &field->id, sizeof(field->id));
	return 0;
}

static int read_members(struct reading *reading, const json_t *from, ProtobufCMessage *message)
{
	const ProtobufCMessageDescriptor *type = message->descriptor;
	const ProtobufCFieldDescriptor *field;
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)from, name, value)
	{
		field = protobuf_c_message_descriptor_get_field_by_name(type, name);
		if (!field)
			return refuse_name(reading, type, name);
		size_t up = enter(reading, name, 0);
		int status = read_field(reading, value, message, field);
		if (status)
			return status;
		leave(reading, up);
	}
	return 0;
}

static int read_object(struct reading *reading, const json_t *from, const ProtobufCMessageDescriptor *type,
		       ProtobufCMessage **out)
{
	*out = NULL;
	if (!json_is_object(from))
		return refuse(reading, "an object is expected");
	ProtobufCMessage *message = allocate(reading, type->sizeof_message);
	if (!message)
		return no_memory(reading);
	type->message_init(message);
	int status = read_members(reading, from, message);
	if (status)
		protobuf_c_message_free_unpacked(message, reading->allocator);
	else
		*out = message;
	return status;
}

int json_read(const char *text, const ProtobufCMessageDescriptor *type, ProtobufCAllocator *allocator,
	      ProtobufCMessage **out, struct npumem_error *error)
{
	struct reading reading = {.allocator = allocator, .error = error};
	json_error_t wrong;
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &wrong);
	*out = NULL;
	if (!root && json_error_code(&wrong) == json_error_out_of_memory)
		return no_memory(&reading);
	if (!root) {
		refuse(&reading, "byte %d: %s", wrong.position, wrong.text);
		npumem_error_number(error, "byte", wrong.position);
		return NPUMEM_INVALID;
	}
	int status = read_object(&reading, root, type, out);
	json_decref(root);
	return status;
}
