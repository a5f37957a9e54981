#include "client/lib/json/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/npumem.pb-c.h"
#include "tests/support/test.h"
#include "tests/unit/client/lib/failing.h"

enum { ROUNDS = 300, DEPTH_MAX = 6 };

static void *take(void *ctx, size_t bytes)
{
	return failing_resize(ctx, NULL, bytes ? bytes : 1);
}

static void give(void *ctx, void *memory)
{
	if (memory)
		failing_resize(ctx, memory, 0);
}

/* ---- messages that hold anything ---- */

static uint64_t state;

static uint64_t draw(void)
{
	state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return state >> 11;
}

/* Any 64 bits, often at the ends. */
static uint64_t draw_wide(void)
{
	static const uint64_t ends[] = {
		0, 1, UINT64_MAX, INT64_MAX, (uint64_t)INT64_MIN, UINT64_C(1) << 53, (UINT64_C(1) << 53) + 1};
	return draw() % 2 ? ends[draw() % 7] : draw() << 32 ^ draw();
}

static ProtobufCMessage *draw_message(const ProtobufCMessageDescriptor *type, ProtobufCAllocator *allocator,
				      unsigned depth);

static char *draw_text(ProtobufCAllocator *allocator)
{
	static const char *const texts[] = {"", "x", "a\"b\\c\n\x01/", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x7f"};
	const char *text = texts[draw() % 4];
	char *copy = allocator->alloc(allocator->allocator_data, strlen(text) + 1);
	return strcpy(copy, text);
}

static void draw_value(const ProtobufCFieldDescriptor *field, void *at, ProtobufCAllocator *allocator,
		       unsigned depth)
{
	static const double reals[] = {0.1, -1e300, 5e-324, INFINITY, -INFINITY, 3};
	const ProtobufCEnumDescriptor *type = field->descriptor;
	ProtobufCBinaryData *bytes = at;
	switch (field->type) {
	case PROTOBUF_C_TYPE_ENUM:
		*(int *)at = draw() % 4 ? type->values[draw() % type->n_values].value : 12345;
		break;
	case PROTOBUF_C_TYPE_BOOL:
		*(protobuf_c_boolean *)at = draw() % 2;
		break;
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
		*(uint32_t *)at = (uint32_t)draw_wide();
		break;
	case PROTOBUF_C_TYPE_DOUBLE:
		*(double *)at = reals[draw() % 6];
		break;
	case PROTOBUF_C_TYPE_STRING:
		*(char **)at = draw_text(allocator);
		break;
	case PROTOBUF_C_TYPE_BYTES:
		bytes->len = draw() % 9;
		bytes->data = allocator->alloc(allocator->allocator_data, 9);
		for (unsigned i = 0; i < 9; i++)
			bytes->data[i] = (uint8_t)draw();
		break;
	case PROTOBUF_C_TYPE_MESSAGE:
		*(ProtobufCMessage **)at = draw_message(field->descriptor, allocator, depth + 1);
		break;
	default:
		*(uint64_t *)at = draw_wide();
	}
}

static void draw_list(const ProtobufCFieldDescriptor *field, uint8_t *base, ProtobufCAllocator *allocator,
		      unsigned depth)
{
	size_t n = 1 + draw() % 3, bytes = json_value_bytes(field);
	uint8_t *list = allocator->alloc(allocator->allocator_data, n * bytes);
	for (size_t i = 0; i < n; i++)
		draw_value(field, list + i * bytes, allocator, depth);
	memcpy(base + field->offset, &list, sizeof(list));
	memcpy(base + field->quantifier_offset, &n, sizeof(n));
}

static ProtobufCMessage *draw_message(const ProtobufCMessageDescriptor *type, ProtobufCAllocator *allocator,
				      unsigned depth)
{
	ProtobufCMessage *message = allocator->alloc(allocator->allocator_data, type->sizeof_message);
	uint8_t *base = (uint8_t *)message;
	ck_assert_uint_lt(depth, DEPTH_MAX);
	type->message_init(message);
	for (unsigned i = 0; i < type->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &type->fields[i];
		uint32_t other = 0;
		if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
			memcpy(&other, base + field->quantifier_offset, sizeof(other));
		if (draw() % 3 || other)
			continue;
		if (field->label == PROTOBUF_C_LABEL_REPEATED) {
			draw_list(field, base, allocator, depth);
			continue;
		}
		draw_value(field, base + field->offset, allocator, depth);
		if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
			memcpy(base + field->quantifier_offset, &field->id, sizeof(field->id));
	}
	return message;
}

static char *text_of(const ProtobufCMessage *message)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);
	fputc('{', out);
	json_members(out, message, false, JSON_WHOLE);
	fputc('}', out);
	fclose(out);
	return text;
}

static void check_same(const ProtobufCMessage *a, const ProtobufCMessage *b, const char *text)
{
	size_t n = protobuf_c_message_get_packed_size(a);
	uint8_t *bytes = malloc(2 * n + 2);
	ck_assert_msg(protobuf_c_message_get_packed_size(b) == n, "%s", text);
	protobuf_c_message_pack(a, bytes);
	protobuf_c_message_pack(b, bytes + n);
	ck_assert_msg(!memcmp(bytes, bytes + n, n), "%s", text);
	free(bytes);
}

TEST(what_is_written_is_read)
{
	static const ProtobufCMessageDescriptor *const types[] = {&npumem__v1__request__descriptor,
								  &npumem__v1__response__descriptor,
								  &npumem__v1__record_entry__descriptor};
	struct failing memory = {.calls = 0};
	ProtobufCAllocator allocator = {take, give, &memory};
	state = 7;
	for (unsigned i = 0; i < ROUNDS; i++) {
		ProtobufCMessage *message = draw_message(types[i % 3], &allocator, 0), *read = NULL;
		char *text = text_of(message);
		struct npumem_error error;
		ck_assert_msg(!json_read(text, types[i % 3], &allocator, &read, &error), "%s\n%s", error.message,
			      text);
		check_same(message, read, text);
		protobuf_c_message_free_unpacked(read, &allocator);
		protobuf_c_message_free_unpacked(message, &allocator);
		free(text);
	}
	ck_assert_int_eq(memory.live, 0);
}

/* Any text does no harm, and leaves nothing behind; nor does memory that runs out anywhere. */
TEST(anything_may_come)
{
	static const char characters[] = "{}[]\":,\\u0d8n1e-.x \x01\x80";
	struct failing memory = {.calls = 0};
	ProtobufCAllocator allocator = {take, give, &memory};
	state = 11;
	for (unsigned i = 0; i < ROUNDS; i++) {
		ProtobufCMessage *message = draw_message(&npumem__v1__request__descriptor, &allocator, 0), *read;
		char *text = text_of(message);
		size_t n = strlen(text);
		protobuf_c_message_free_unpacked(message, &allocator);
		for (unsigned k = 0; k < 20; k++) {
			size_t at = draw() % n;
			char was = text[at];
			text[at] = k % 4 ? characters[draw() % (sizeof(characters) - 1)] : 0;
			memory.fail_at = k % 5 ? 0 : memory.calls + 1 + (unsigned)(draw() % 20);
			int status = json_read(text, &npumem__v1__request__descriptor, &allocator, &read, NULL);
			ck_assert(status == 0 || status == NPUMEM_INVALID || status == NPUMEM_RESOURCE_EXHAUSTED);
			ck_assert_int_eq(!status, read != NULL);
			if (read)
				protobuf_c_message_free_unpacked(read, &allocator);
			ck_assert_int_eq(memory.live, 0);
			text[at] = was;
		}
		free(text);
	}
}

/* ---- by hand ---- */

static Npumem__V1__WriteRequest *write_of(const char *text, ProtobufCAllocator *allocator)
{
	ProtobufCMessage *read;
	struct npumem_error error;
	ck_assert_msg(!json_read(text, &npumem__v1__write_request__descriptor, allocator, &read, &error), "%s: %s",
		      text, error.message);
	return (Npumem__V1__WriteRequest *)read;
}

TEST(other_ways_to_say_it)
{
	struct failing memory = {.calls = 0};
	ProtobufCAllocator allocator = {take, give, &memory};
	Npumem__V1__WriteRequest *write = write_of(
		" {\t\"tensor\" :\n{ \"name\":\"\\u0078\\u00E9\\ud83d\\ude00\\n\\/\", \"handle\": \"17\" } , "
		"\"first\":\"-5\", \"count\":null, \"data\": \"-_8\" } ",
		&allocator);
	ck_assert_str_eq(write->tensor->name, "x\xc3\xa9\xf0\x9f\x98\x80\n/");
	ck_assert_uint_eq(write->tensor->handle, 17);
	ck_assert_int_eq(write->first, -5);
	ck_assert_int_eq(write->count, 0);
	ck_assert_uint_eq(write->data.len, 2);
	ck_assert_mem_eq(write->data.data, "\xfb\xff", 2);
	npumem__v1__write_request__free_unpacked(write, &allocator);
	ck_assert_int_eq(memory.live, 0);
}

TEST(what_is_wrong_is_named)
{
	static const struct {
		const char *text, *field, *says;
	} cases[] = {
		{"", "", "byte 0: "},
		{"{", "", "byte 1: "},
		{"{\"first\"", "", "byte 8: ':' expected"},
		{"{\"first\":1", "", "'}' expected"},
		{"{\"first\":1,}", "", "string or '}' expected"},
		{"{\"first\":1 \"count\":1}", "", "'}' expected"},
		{"{\"first\":1}x", "", "end of file expected"},
		{"{\"firs\":1}", "", "there are: tensor, first, data"},
		{"{\"first\":1,\"first\":2}", "", "duplicate object key near '\"first\"'"},
		{"{\"first\":01x}", "", "invalid token"},
		{"{\"first\":--1}", "", "invalid token"},
		{"{\"first\":1e3}", "first", "an integer is expected"},
		{"{\"first\":\"\"}", "first", "an integer is expected"},
		{"{\"first\":\"1e3\"}", "first", "an integer is expected"},
		{"{\"first\":\"--1\"}", "first", "an integer is expected"},
		{"{\"first\":true}", "first", "an integer is expected"},
		{"{\"first\":\"-9223372036854775809\"}", "first", "is not -9223372036854775808 to"},
		{"{\"first\":-9223372036854775809}", "", "too big"},
		{"{\"segment\":-1}", "segment", "2^64"},
		{"{\"segment\":\"18446744073709551616\"}", "segment", "2^64"},
		{"{\"tensor\":7}", "tensor", "an object is expected"},
		{"[]", "", "an object is expected"},
		{"{\"tensor\":{\"name\":7}}", "tensor.name", "a string is expected"},
		{"{\"tensor\":{\"name\":\"a\\u0000\"}}", "", "\\u0000"},
		{"{\"tensor\":{\"name\":\"\\ud83d\"}}", "", "invalid Unicode"},
		{"{\"tensor\":{\"name\":\"\\x\"}}", "", "invalid escape"},
		{"{\"tensor\":{\"name\":\"\n\"}}", "", "unexpected newline"},
		{"{\"tensor\":{\"name\":\"\xff\"}}", "", "unable to decode byte 0xff"},
		{"{\"tensor\":{\"name\":\"x}}", "", "premature end of input"},
		{"{\"data\":\"AA=A\"}", "data", "base64"},
		{"{\"data\":\"A\"}", "data", "base64"},
		{"{\"data\":\"AB==\"}", "data", "base64"},
		{"{\"data\":\"AA===\"}", "data", "base64"},
		{"{\"data\":3}", "data", "a string is expected"},
	};
	struct failing memory = {.calls = 0};
	ProtobufCAllocator allocator = {take, give, &memory};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct npumem_error error;
		ProtobufCMessage *read;
		npumem_error_clear(&error);
		ck_assert_msg(json_read(cases[i].text, &npumem__v1__write_request__descriptor, &allocator, &read,
					&error) == NPUMEM_INVALID,
			      "%s", cases[i].text);
		ck_assert_msg(strstr(error.message, cases[i].says), "%s: %s", cases[i].text, error.message);
		ck_assert_str_eq(error.fields[0].text, cases[i].field);
		ck_assert_int_eq(npumem_error_find(&error, "byte", -1) >= 0,
				 !strncmp(error.message, "the request: byte ", 18));
		ck_assert_int_eq(memory.live, 0);
	}
}
