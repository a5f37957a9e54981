/* Answers as text, by their descriptors, so that a field that is new is compared without a word here. */
#include "tests/random/message.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
	char *bytes;
	size_t used, room;
	unsigned detail;
	const char *prefix;
};

static __attribute__((format(printf, 2, 3))) void say(struct text *text, const char *format, ...)
{
	va_list arguments;
	char piece[512];
	int n;

	va_start(arguments, format);
	n = vsnprintf(piece, sizeof(piece), format, arguments);
	va_end(arguments);
	if (n >= (int)sizeof(piece))
		n = (int)sizeof(piece) - 1;
	if (text->used + (size_t)n + 1 > text->room) {
		text->room = 2 * text->room + (size_t)n + 1;
		text->bytes = realloc(text->bytes, text->room);
		if (!text->bytes)
			abort();
	}
	memcpy(text->bytes + text->used, piece, (size_t)n + 1);
	text->used += (size_t)n;
}

static bool is_one_of(const char *name, const char *const *names)
{
	while (*names && strcmp(name, *names))
		names++;
	return *names != NULL;
}

static bool is_told(const struct text *text, const char *name)
{
	/* Handles are given again in the order that tensors went, which is nobody's business. */
	static const char *const never[] = {"start_ns", "end_ns", "id", "sessions", "handle", "base_handle", NULL};
	static const char *const places[] = {"address", "npu", "offset", "message", "fields", "lends",
					     "borrows", "stat", "dump", "compacted", NULL};
	static const char *const bytes[] = {"state", "unwritten_bytes", "damaged_bytes", NULL};

	return !is_one_of(name, never) && (text->detail & MESSAGE_PLACES || !is_one_of(name, places)) &&
	       (text->detail & MESSAGE_BYTES || !is_one_of(name, bytes));
}

static void say_message(struct text *text, const ProtobufCMessage *message);

static void say_bytes(struct text *text, const ProtobufCBinaryData *data)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < data->len; i++)
		hash = (hash ^ data->data[i]) * UINT64_C(0x100000001b3);
	say(text, "%zu bytes", data->len);
	for (size_t i = 0; i < data->len && i < 4; i++)
		say(text, " %d", (int8_t)data->data[i]);
	say(text, " … %016" PRIx64, hash);
}

/* A tensor without a name is called by its handle: "tensor #4711". */
static void say_string(struct text *text, const char *string)
{
	const char *handle = strchr(string, '#');

	say(text, "\"%.*s\"", handle ? (int)(handle - string) : (int)strlen(string), string);
}

static void say_value(struct text *text, ProtobufCType type, const void *value)
{
	switch (type) {
	case PROTOBUF_C_TYPE_MESSAGE:
		say_message(text, *(const ProtobufCMessage *const *)value);
		break;
	case PROTOBUF_C_TYPE_STRING:
		say_string(text, *(const char *const *)value);
		break;
	case PROTOBUF_C_TYPE_BYTES:
		say_bytes(text, value);
		break;
	case PROTOBUF_C_TYPE_DOUBLE:
		say(text, "%a", *(const double *)value);
		break;
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		say(text, "%" PRId64, *(const int64_t *)value);
		break;
	default: /* what is left is of 32 bits */
		say(text, "%" PRId32, *(const int32_t *)value);
		break;
	}
}

static bool is_zero(const ProtobufCFieldDescriptor *field, const void *value)
{
	static const uint8_t zeros[sizeof(ProtobufCBinaryData)];

	switch (field->type) {
	case PROTOBUF_C_TYPE_STRING:
		return !**(const char *const *)value;
	case PROTOBUF_C_TYPE_BYTES:
		return !((const ProtobufCBinaryData *)value)->len;
	case PROTOBUF_C_TYPE_MESSAGE:
		return !*(const ProtobufCMessage *const *)value;
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return !memcmp(value, zeros, 8);
	default:
		return !memcmp(value, zeros, 4);
	}
}

static size_t size_of(ProtobufCType type)
{
	switch (type) {
	case PROTOBUF_C_TYPE_MESSAGE:
	case PROTOBUF_C_TYPE_STRING:
		return sizeof(void *);
	case PROTOBUF_C_TYPE_BYTES:
		return sizeof(ProtobufCBinaryData);
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_SFIXED32:
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
	case PROTOBUF_C_TYPE_FLOAT:
	case PROTOBUF_C_TYPE_BOOL:
	case PROTOBUF_C_TYPE_ENUM:
		return 4;
	default:
		return 8;
	}
}

static void say_field(struct text *text, const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	const uint8_t *value = (const uint8_t *)message + field->offset;
	size_t n = 1, size = size_of(field->type);

	if (field->label == PROTOBUF_C_LABEL_REPEATED) {
		n = *(const size_t *)(const void *)((const uint8_t *)message + field->quantifier_offset);
		value = *(const uint8_t *const *)(const void *)value;
	} else if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
		const uint8_t *which = (const uint8_t *)message + field->quantifier_offset;

		if (*(const uint32_t *)(const void *)which != field->id)
			return;
	} else if (is_zero(field, value)) {
		return;
	}
	for (size_t i = 0; i < n; i++) {
		say(text, " %s=", field->name);
		say_value(text, field->type, value + i * size);
	}
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_listed(const struct text *text, const Npumem__V1__Tensor *tensor)
{
	return !tensor->name[0] || !strncmp(tensor->name, text->prefix, strlen(text->prefix));
}

/* In whatever order they lie in the daemon's table. */
static void say_list(struct text *text, const Npumem__V1__List *list)
{
	char **lines = calloc(list->n_tensors + 1, sizeof(*lines));
	size_t n = 0;

	if (!lines)
		abort();
	for (size_t i = 0; i < list->n_tensors; i++) {
		struct text line = {.detail = text->detail, .prefix = text->prefix};

		if (!is_listed(text, list->tensors[i]))
			continue;
		say_message(&line, &list->tensors[i]->base);
		lines[n++] = line.bytes;
	}
	qsort(lines, n, sizeof(*lines), by_text);
	for (size_t i = 0; i < n; i++) {
		/* Longer than what say() takes at once. */
		for (const char *at = lines[i]; *at; at += strlen(at) < 256 ? strlen(at) : 256)
			say(text, "%.256s", at);
		free(lines[i]);
	}
	free(lines);
}

static void say_message(struct text *text, const ProtobufCMessage *message)
{
	say(text, "{");
	if (message->descriptor == &npumem__v1__list__descriptor && !(text->detail & MESSAGE_PLACES))
		say_list(text, (const Npumem__V1__List *)message);
	else
		for (unsigned i = 0; i < message->descriptor->n_fields; i++)
			if (is_told(text, message->descriptor->fields[i].name))
				say_field(text, message, &message->descriptor->fields[i]);
	say(text, " }");
}

char *message_text(const Npumem__V1__Response *response, unsigned detail, const char *prefix)
{
	struct text text = {.detail = detail, .prefix = prefix};

	say_message(&text, &response->base);
	return text.bytes;
}
