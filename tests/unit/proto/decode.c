/* Against protobuf-c's own unpacking: the same messages accepted, the same values, none of them in bytes that are
 * gone. NPUMEM_DECODE_MESSAGES and NPUMEM_DECODE_SEED set how many, and from which seed on. */
#include "proto/decode.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/member.h"
#include "proto/npumem.pb-c.h"
#include "tests/support/test.h"
#include "tests/unit/proto/wire_fuzz.h"

#define REQUEST (&npumem__v1__request__descriptor)

static void *take(void *ctx, size_t bytes)
{
	(void)ctx;
	return malloc(bytes);
}

static void give(void *ctx, void *memory)
{
	(void)ctx;
	free(memory);
}

/* ---- trees ---- */

static bool same(const ProtobufCMessage *a, const ProtobufCMessage *b);

static bool same_bytes(const ProtobufCBinaryData *a, const ProtobufCBinaryData *b)
{
	return a->len == b->len && (!a->len || !memcmp(a->data, b->data, a->len));
}

static bool same_value(const ProtobufCFieldDescriptor *field, const void *a, const void *b)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_STRING:
		return !strcmp(*(char *const *)a, *(char *const *)b);
	case PROTOBUF_C_TYPE_BYTES:
		return same_bytes(a, b);
	case PROTOBUF_C_TYPE_MESSAGE:
		return same(*(ProtobufCMessage *const *)a, *(ProtobufCMessage *const *)b);
	default:
		return !memcmp(a, b, member_bytes(field));
	}
}

static bool same_list(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *a, const ProtobufCMessage *b)
{
	size_t n = *member_count(a, field), bytes = member_bytes(field);
	const char *of_a = *(char **)member_of(a, field), *of_b = *(char **)member_of(b, field);
	if (n != *member_count(b, field))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!same_value(field, of_a + i * bytes, of_b + i * bytes))
			return false;
	return true;
}

static bool same_member(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *a,
			const ProtobufCMessage *b)
{
	if (field->label == PROTOBUF_C_LABEL_REPEATED)
		return same_list(field, a, b);
	if (member_is_of_oneof(field)) {
		if (*member_case(a, field) != *member_case(b, field))
			return false;
		if (*member_case(a, field) != field->id)
			return true;
	}
	return same_value(field, member_of(a, field), member_of(b, field));
}

static bool same(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
	if (!a || !b || a->descriptor != b->descriptor || a->n_unknown_fields)
		return a == b;
	for (unsigned i = 0; i < a->descriptor->n_fields; i++)
		if (!same_member(&a->descriptor->fields[i], a, b))
			return false;
	return true;
}

/* ---- the comparison ---- */

struct pair {
	struct budget ours, theirs;
	uint64_t n, n_accepted, n_borrowed;
};

static void pair_init(struct pair *pair)
{
	memset(pair, 0, sizeof(*pair));
	budget_init(&pair->ours, take, give, NULL);
	budget_init(&pair->theirs, take, give, NULL);
}

static void pair_deinit(struct pair *pair)
{
	budget_deinit(&pair->ours);
	budget_deinit(&pair->theirs);
}

static uint32_t first_unknown(const ProtobufCMessage *message)
{
	unsigned i = 0;
	/* Field 0 in a tag of several bytes is taken by both. */
	while (i < message->n_unknown_fields && !message->unknown_fields[i].tag)
		i++;
	return i < message->n_unknown_fields ? message->unknown_fields[i].tag : 0;
}

/* The bytes have a place of their own size, and go to another one before the values are looked at. */
static bool compare(struct pair *pair, const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t n)
{
	struct decode decode = {.budget = &pair->ours, .n_fields = SIZE_MAX};
	uint8_t *first = malloc(n ? n : 1), *second = malloc(n ? n : 1);
	ProtobufCMessage *ours, *theirs;
	memcpy(first, bytes, n);
	memcpy(second, bytes, n);
	budget_reset(&pair->ours, n);
	budget_reset(&pair->theirs, n);
	pair->ours.limit = pair->theirs.limit = SIZE_MAX;
	ours = decode_message(&decode, type, first, n);
	theirs = protobuf_c_message_unpack(type, &pair->theirs.allocator, n, bytes);
	if (ours)
		borrowed_rebase(decode.borrowed, first, n, second);
	memset(first, 0xa5, n);
	free(first);
	bool is_same = same(ours, theirs) && (!ours || decode.unknown == first_unknown(theirs));
	pair->n++;
	pair->n_accepted += ours != NULL;
	pair->n_borrowed += ours && decode.borrowed;
	free(second);
	return is_same;
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	return text ? strtoull(text, NULL, 0) : otherwise;
}

static const ProtobufCMessageDescriptor *some_type(uint64_t *random)
{
	static const ProtobufCMessageDescriptor *const types[] = {
		&npumem__v1__response__descriptor, &npumem__v1__record_entry__descriptor,
		&npumem__v1__submit_request__descriptor, &npumem__v1__plan_request__descriptor,
		&npumem__v1__alloc_request__descriptor};
	return wire_random(random, 3) ? REQUEST : types[wire_random(random, sizeof(types) / sizeof(types[0]))];
}

TEST(what_protobuf_c_accepts_has_the_same_values)
{
	uint64_t first = from_environment("NPUMEM_DECODE_SEED", 1),
		 n = from_environment("NPUMEM_DECODE_MESSAGES", 50000);
	struct wire wire = {.room = WIRE_BYTES_MAX};
	struct pair pair;
	pair_init(&pair);
	for (uint64_t seed = first; seed < first + n; seed++) {
		uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
		const ProtobufCMessageDescriptor *type = some_type(&random);
		wire.random = &random;
		wire.n = 0;
		if (wire_random(&random, 10))
			wire_message(&wire, type, 0);
		else
			wire_fixed(&wire, wire_random(&random, 40));
		if (wire_random(&random, 2))
			wire_break(&wire);
		ck_assert_msg(compare(&pair, type, wire.bytes, wire.n), "%s differs: NPUMEM_DECODE_SEED=%" PRIu64,
			      type->name, seed);
	}
	if (getenv("NPUMEM_DECODE_MESSAGES"))
		printf("%" PRIu64 " messages from seed %" PRIu64 ": %" PRIu64 " accepted, %" PRIu64
		       " with payloads in place\n",
		       pair.n, first, pair.n_accepted, pair.n_borrowed);
	/* Nothing was compared where all is refused. */
	ck_assert_uint_gt(pair.n_accepted, n / 4);
	ck_assert_uint_lt(pair.n_accepted, n - n / 20);
	ck_assert_uint_gt(pair.n_borrowed, n / 100);
	pair_deinit(&pair);
}

/* ---- limits ---- */

/* How many fields a message has at least: the least that it can be read with, or that it breaks with. */
static size_t count(const void *message, size_t n)
{
	uint8_t *bytes = malloc(n);
	struct decode decode;
	struct budget budget;
	size_t most = 0;
	memcpy(bytes, message, n);
	budget_init(&budget, take, give, NULL);
	for (;; most++) {
		decode = (struct decode){.budget = &budget, .n_fields = most};
		budget_reset(&budget, n);
		decode_message(&decode, REQUEST, bytes, n);
		if (!decode.has_too_many)
			break;
	}
	budget_deinit(&budget);
	free(bytes);
	return most;
}

#define COUNT(text) count(text, sizeof(text) - 1)

TEST(each_field_counts)
{
	/* id; id twice; list {}; list { after limit }; list twice. */
	ck_assert_uint_eq(COUNT("\x08\x05"), 1);
	ck_assert_uint_eq(COUNT("\x08\x05\x08\x06"), 2);
	ck_assert_uint_eq(COUNT("\x62\x00"), 1);
	ck_assert_uint_eq(COUNT("\x62\x05\x08\x05\x10\x80\x01"), 3);
	ck_assert_uint_eq(COUNT("\x62\x02\x08\x05\x62\x00"), 3);
	/* open { tensor { handle name } }: what is in a name is no field. */
	ck_assert_uint_eq(COUNT("\x52\x13\x0a\x11\x09hhhhhhhh\x12\x06\x08\x05\x08\x05\x08\x05"), 4);
	/* Unknown ones of each kind, and what is in them. */
	ck_assert_uint_eq(COUNT("\xf8\x07\x80\x01\xf9\x07hhhhhhhh\xfd\x07hhhh\xfa\x07\x04\x08\x05\x08\x05"), 4);
	/* Of what is malformed, up to where it breaks. */
	ck_assert_uint_eq(COUNT("\x08\x05\x62\x09\x08\x05"), 2);
	ck_assert_uint_eq(COUNT("\x62\x01\x08\x08\x05\x08\x05"), 2);
}

/* Of submit { operations { fill { tensor { handle } integer } } … }, what of the list fits so many fields. */
TEST(how_much_of_a_list_fits)
{
	static const char operation[] = "\x0a\x0f\x22\x0d\x0a\x09\x09hhhhhhhh\x10\x02";
	uint8_t bytes[3 + 3 * (sizeof(operation) - 1)] = {0x92, 0x01, sizeof(bytes) - 3};
	struct budget budget;
	for (unsigned i = 0; i < 3; i++)
		memcpy(bytes + 3 + i * (sizeof(operation) - 1), operation, sizeof(operation) - 1);
	budget_init(&budget, take, give, NULL);
	/* submit is one, an operation five. */
	for (size_t n_fields = 0; n_fields <= 16; n_fields++) {
		struct decode decode = {.budget = &budget, .n_fields = n_fields};
		budget_reset(&budget, sizeof(bytes));
		ck_assert_int_eq(decode_message(&decode, REQUEST, bytes, sizeof(bytes)) != NULL, n_fields == 16);
		ck_assert_int_eq(decode.has_too_many, n_fields < 16);
		ck_assert_uint_eq(decode.n_whole, n_fields ? (n_fields - 1) / 5 : 0);
	}
	budget_deinit(&budget);
}

TEST(a_packed_list_counts_by_its_bytes)
{
	/* run { params { key values } }, packed and one by one. */
	ck_assert_uint_eq(COUNT("\x8a\x01\x09\x1a\x07\x08\x01\x12\x03\x02\x80\x01"), 4 + 3);
	ck_assert_uint_eq(COUNT("\x8a\x01\x08\x1a\x06\x08\x01\x10\x02\x10\x04"), 5);
}

/* submit { write { tensor { handle 1 } data "payload" } write { data "more" } }. */
static const uint8_t two_writes[] = "\x92\x01\x24\x0a\x16\x12\x14\x0a\x09\x09\x01\0\0\0\0\0\0\0"
				    "\x1a\x07payload\x0a\x0a\x12\x08\x1a\x04more\x10\x02";

TEST(payloads_stay_where_they_are)
{
	size_t n = sizeof(two_writes) - 1;
	struct decode decode = {.n_fields = 16};
	struct budget budget;
	uint8_t other[64];
	budget_init(&budget, take, give, NULL);
	budget_reset(&budget, n);
	decode.budget = &budget;
	const Npumem__V1__Request *request =
		(const Npumem__V1__Request *)decode_message(&decode, REQUEST, two_writes, n);
	ck_assert_ptr_nonnull(request);
	const ProtobufCBinaryData *data = &request->submit->operations[0]->write->data;
	ck_assert_uint_eq(data->len, 7);
	ck_assert_ptr_eq(data->data, two_writes + 20);
	borrowed_rebase(decode.borrowed, two_writes, n, other);
	ck_assert_ptr_eq(data->data, other + 20);
	ck_assert_ptr_eq(request->submit->operations[1]->write->data.data, other + 33);
	/* Of other bytes there are none left. */
	borrowed_rebase(decode.borrowed, two_writes, n, NULL);
	ck_assert_ptr_eq(data->data, other + 20);
	budget_deinit(&budget);
}

TEST(the_budget_may_end_anywhere)
{
	size_t n = sizeof(two_writes) - 1, whole = SIZE_MAX;
	struct budget budget;
	budget_init(&budget, take, give, NULL);
	for (size_t limit = 0; limit < whole; limit += 16) {
		struct decode decode = {.budget = &budget, .n_fields = 16};
		budget_reset(&budget, n);
		budget.limit = limit;
		if (decode_message(&decode, REQUEST, two_writes, n))
			whole = limit;
		else
			ck_assert(budget.exceeded && !decode.has_too_many);
		ck_assert_uint_le(budget.spent, limit);
	}
	ck_assert_uint_gt(whole, 200);
	budget_deinit(&budget);
}

/* open { tensor { name } } and an unknown field: of a long text and of an unknown value nothing is copied. */
TEST(long_values_are_not_copied)
{
	enum { HEAD = 14, LONG = 1 << 20 };
	struct budget budget;
	uint8_t *bytes = calloc(1, HEAD + LONG);
	budget_init(&budget, take, give, NULL);
	for (size_t n = DECODE_TEXT_BYTES_MAX; n <= LONG; n = n == DECODE_TEXT_BYTES_MAX ? n + 1 : n * 2 - 1) {
		struct decode decode = {.budget = &budget, .n_fields = 3};
		size_t sizes[] = {n + 8, n + 4, n}, at = 0;
		static const uint8_t tags[] = {0x52, 0x0a, 0x12};
		for (unsigned i = 0; i < 3; i++) {
			bytes[at++] = tags[i];
			for (unsigned k = 0; k < 3; k++)
				bytes[at++] = (uint8_t)((sizes[i] >> 7 * k & 0x7f) | (k < 2 ? 0x80 : 0));
		}
		budget_reset(&budget, at + n);
		const ProtobufCMessage *message = decode_message(&decode, REQUEST, bytes, at + n);
		ck_assert_int_eq(message != NULL, n == DECODE_TEXT_BYTES_MAX);
		if (!message) {
			ck_assert_str_eq(decode.long_text->name, "name");
			ck_assert_uint_eq(decode.long_text_bytes, n);
			ck_assert_uint_lt(budget.spent, DECODE_TEXT_BYTES_MAX);
		}
	}
	struct decode decode = {.budget = &budget, .n_fields = 1};
	memcpy(bytes, "\xfa\x7f\x80\x80\x40", 5);
	budget_reset(&budget, 5 + LONG);
	const ProtobufCMessage *message = decode_message(&decode, REQUEST, bytes, 5 + LONG);
	ck_assert_ptr_nonnull(message);
	ck_assert_uint_eq(message->n_unknown_fields, 0);
	ck_assert_uint_eq(decode.unknown, 2047);
	ck_assert_uint_lt(budget.spent, DECODE_TEXT_BYTES_MAX);
	budget_deinit(&budget);
	free(bytes);
}

/* A list doubles, so it is not copied each time that it grows. */
TEST(long_lists_take_twice_their_size)
{
	struct decode decode = {.n_fields = SIZE_MAX};
	size_t n = 4 + 2 * 10000;
	uint8_t *bytes = calloc(1, n);
	struct budget budget;
	memcpy(bytes, "\x4a\xa0\x9c\x01", 4);
	for (size_t i = 4; i < n; i += 2)
		bytes[i] = 0x0a;
	budget_init(&budget, take, give, NULL);
	budget_reset(&budget, n);
	budget.limit = SIZE_MAX;
	decode.budget = &budget;
	const Npumem__V1__Request *request =
		(const Npumem__V1__Request *)decode_message(&decode, REQUEST, bytes, n);
	ck_assert_ptr_nonnull(request);
	ck_assert_uint_eq(request->free->n_tensors, 10000);
	ck_assert_uint_lt(budget.spent, 10000 * sizeof(Npumem__V1__Ref) + 4 * 16384 * sizeof(void *));
	budget_deinit(&budget);
	free(bytes);
}
