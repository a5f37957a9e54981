/* By the descriptors that protoc-c generates, so that a new member of a message needs nothing here. */
#include <stdbool.h>
#include <string.h>

#include "client/lib/json/json.h"

#include <inttypes.h>
#include <math.h>

/* A double holds all integers up to here exactly. */
#define DOUBLE_EXACT (INT64_C(1) << 53)

/* Bytes of the UTF-8 sequence at `at`; 0: it is none. */
static size_t utf8_bytes(const unsigned char *at)
{
	size_t n = at[0] < 0x80			   ? 1
		   : at[0] >= 0xc2 && at[0] < 0xe0 ? 2
		   : at[0] >= 0xe0 && at[0] < 0xf0 ? 3
		   : at[0] >= 0xf0 && at[0] < 0xf5 ? 4
						   : 0;
	for (size_t i = 1; i < n; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	/* Overlong, surrogates, beyond the last. */
	if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
	    (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
		return 0;
	return n;
}

void json_text(FILE *out, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	fputc('"', out);
	while (*at) {
		size_t n = utf8_bytes(at);
		if (*at == '"' || *at == '\\')
			fprintf(out, "\\%c", *at);
		else if (*at < 0x20)
			fprintf(out, "\\u%04x", *at);
		else if (n)
			fwrite(at, 1, n, out);
		else
			fputc('?', out);
		at += n ? n : 1;
	}
	fputc('"', out);
}

static void put_enum(FILE *out, const ProtobufCEnumDescriptor *type, int value)
{
	const ProtobufCEnumValue *row = protobuf_c_enum_descriptor_get_value(type, value);
	if (row)
		json_text(out, row->name);
	else
		fprintf(out, "%d", value);
}

static void put_double(FILE *out, double value)
{
	if (isfinite(value))
		fprintf(out, "%.17g", value);
	else
		json_text(out, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
}

/* Readers of JSON have integers of 64 bits with a sign; or only what a double holds. */
static void put_uint64(FILE *out, uint64_t value, enum json_form form)
{
	uint64_t most = form == JSON_WHOLE ? DOUBLE_EXACT : INT64_MAX;
	fprintf(out, value > most ? "\"%" PRIu64 "\"" : "%" PRIu64, value);
}

static void put_int64(FILE *out, int64_t value, enum json_form form)
{
	bool is_large = form == JSON_WHOLE && (value > DOUBLE_EXACT || value < -DOUBLE_EXACT);
	fprintf(out, is_large ? "\"%" PRId64 "\"" : "%" PRId64, value);
}

/* RFC 4648, with padding. */
static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void put_base64(FILE *out, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i += 3) {
		size_t left = n - i;
		uint32_t word = (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
				(left > 2 ? bytes[i + 2] : 0);
		fputc(digits[word >> 18], out);
		fputc(digits[word >> 12 & 63], out);
		fputc(left > 1 ? digits[word >> 6 & 63] : '=', out);
		fputc(left > 2 ? digits[word & 63] : '=', out);
	}
}

static void put_bytes(FILE *out, const ProtobufCBinaryData *bytes, enum json_form form)
{
	if (form != JSON_WHOLE) {
		fprintf(out, "%zu", bytes->len);
		return;
	}
	fputc('"', out);
	put_base64(out, bytes->data, bytes->len);
	fputc('"', out);
}

static void put_handle(FILE *out, uint64_t handle, enum json_form form)
{
	if (form == JSON_WHOLE)
		put_uint64(out, handle, form);
	else
		fprintf(out, "\"%016" PRIx64 "\"", handle);
}

static void put_value(FILE *out, const ProtobufCFieldDescriptor *field, const void *at, enum json_form form)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_ENUM:
		put_enum(out, field->descriptor, *(const int *)at);
		break;
	case PROTOBUF_C_TYPE_MESSAGE:
		fputc('{', out);
		json_members(out, *(ProtobufCMessage *const *)at, false, form);
		fputc('}', out);
		break;
	case PROTOBUF_C_TYPE_STRING:
		json_text(out, *(char *const *)at ? *(char *const *)at : "");
		break;
	case PROTOBUF_C_TYPE_BYTES:
		put_bytes(out, at, form);
		break;
	case PROTOBUF_C_TYPE_BOOL:
		fputs(*(const protobuf_c_boolean *)at ? "true" : "false", out);
		break;
	case PROTOBUF_C_TYPE_DOUBLE:
		put_double(out, *(const double *)at);
		break;
	case PROTOBUF_C_TYPE_FIXED64:
		put_handle(out, *(const uint64_t *)at, form);
		break;
	case PROTOBUF_C_TYPE_UINT64:
		put_uint64(out, *(const uint64_t *)at, form);
		break;
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
		put_int64(out, *(const int64_t *)at, form);
		break;
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
		fprintf(out, "%" PRIu32, *(const uint32_t *)at);
		break;
	default:
		fputs("null", out);
	}
}

size_t json_value_bytes(const ProtobufCFieldDescriptor *field)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_MESSAGE:
	case PROTOBUF_C_TYPE_STRING:
		return sizeof(void *);
	case PROTOBUF_C_TYPE_BYTES:
		return sizeof(ProtobufCBinaryData);
	case PROTOBUF_C_TYPE_BOOL:
		return sizeof(protobuf_c_boolean);
	case PROTOBUF_C_TYPE_ENUM:
		return sizeof(int);
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
		return sizeof(uint32_t);
	default:
		return sizeof(uint64_t);
	}
}

static bool is_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	static const uint64_t zero[2];
	const uint8_t *base = (const uint8_t *)message, *at = base + field->offset;
	if (field->label == PROTOBUF_C_LABEL_REPEATED)
		return *(const size_t *)(const void *)(base + field->quantifier_offset) > 0;
	if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
		return *(const uint32_t *)(const void *)(base + field->quantifier_offset) == field->id;
	if (field->type == PROTOBUF_C_TYPE_STRING)
		return *(char *const *)(const void *)at && **(char *const *)(const void *)at;
	if (field->type == PROTOBUF_C_TYPE_BYTES)
		return ((const ProtobufCBinaryData *)(const void *)at)->len > 0;
	return memcmp(at, zero, json_value_bytes(field)) != 0;
}

static void put_list(FILE *out, const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
		     enum json_form form)
{
	const uint8_t *base = (const uint8_t *)message;
	size_t n = *(const size_t *)(const void *)(base + field->quantifier_offset),
	       bytes = json_value_bytes(field);
	const uint8_t *list = *(const uint8_t *const *)(const void *)(base + field->offset);
	fputc('[', out);
	for (size_t i = 0; i < n; i++) {
		if (i)
			fputc(',', out);
		put_value(out, field, list + i * bytes, form);
	}
	fputc(']', out);
}

bool json_members(FILE *out, const ProtobufCMessage *message, bool more, enum json_form form)
{
	const ProtobufCMessageDescriptor *type = message->descriptor;
	for (unsigned i = 0; i < type->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &type->fields[i];
		if (!is_set(message, field))
			continue;
		fprintf(out, "%s\"%s\":", more ? "," : "", field->name);
		more = true;
		if (field->label == PROTOBUF_C_LABEL_REPEATED)
			put_list(out, message, field, form);
		else
			put_value(out, field, (const uint8_t *)message + field->offset, form);
	}
	return more;
}
