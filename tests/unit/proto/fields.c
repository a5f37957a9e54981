/* Counting fields: exact for whole messages, no more than it must for the others. */
#include "proto/fields.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "proto/npumem.pb-c.h"

#define REQUEST (&npumem__v1__request__descriptor)

/* The exact number, over bytes of their own size, so that reading past the end is seen. */
static size_t count(const void *message, size_t n)
{
	uint8_t *bytes = malloc(n);
	size_t most = 0;

	memcpy(bytes, message, n);
	while (!fields_within(REQUEST, bytes, n, most))
		most++;
	for (size_t more = most; more < n + 3; more++)
		ck_assert(fields_within(REQUEST, bytes, n, more));
	free(bytes);
	return most;
}

#define COUNT(text) count(text, sizeof(text) - 1)

START_TEST(each_field_counts)
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
}
END_TEST

START_TEST(a_packed_list_counts_by_its_bytes)
{
	/* run { params { key values } }, packed and one by one. */
	ck_assert_uint_eq(COUNT("\x8a\x01\x09\x1a\x07\x08\x01\x12\x03\x02\x80\x01"), 4 + 3);
	ck_assert_uint_eq(COUNT("\x8a\x01\x08\x1a\x06\x08\x01\x10\x02\x10\x04"), 5);
	/* Where it is longer than its message, it is no list. */
	ck_assert_uint_eq(COUNT("\x8a\x01\x06\x1a\x04\x08\x01\x12\x7f"), 4);
}
END_TEST

START_TEST(what_is_malformed_counts_as_far_as_it_goes)
{
	/* A tag without an end, a value, a length; too much for what is left; groups. */
	ck_assert_uint_eq(COUNT("\x08\x05\x88\x80"), 1);
	ck_assert_uint_eq(COUNT("\x08\x05\x08\x80"), 2);
	ck_assert_uint_eq(COUNT("\x08\x05\x62\x80"), 2);
	ck_assert_uint_eq(COUNT("\x08\x05\x62\x09\x08\x05"), 2);
	ck_assert_uint_eq(COUNT("\x08\x05\x62\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x08\x05"), 2);
	ck_assert_uint_eq(COUNT("\x08\x05\x0b\x08\x05"), 2);
	ck_assert_uint_eq(COUNT("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x08\x05"), 2);
	ck_assert_uint_eq(COUNT("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x08\x05"), 1);
	/* An inner message that breaks hides nothing of what comes after it. */
	ck_assert_uint_eq(COUNT("\x62\x01\x08\x08\x05\x08\x05"), 4);
}
END_TEST

/* Counts what is set, by the descriptors. */
static size_t count_set(const ProtobufCMessage *message)
{
	size_t n = message->n_unknown_fields;

	for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
		const char *base = (const char *)message;
		const void *const *member = (const void *)(base + field->offset);

		ck_assert_int_ne(field->type, PROTOBUF_C_TYPE_BYTES);
		if (field->label == PROTOBUF_C_LABEL_REPEATED) {
			size_t many = *(const size_t *)(const void *)(base + field->quantifier_offset);

			n += many;
			for (size_t k = 0; k < many; k++)
				n += count_set(((const ProtobufCMessage *const *)*member)[k]);
		} else if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF &&
			   *(const uint32_t *)(const void *)(base + field->quantifier_offset) != field->id) {
			continue;
		} else if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
			n += *member ? 1 + count_set(*member) : 0;
		} else if (field->type == PROTOBUF_C_TYPE_STRING) {
			n += **(const char *const *)(const void *)member != 0;
		} else {
			n++;
		}
	}
	return n;
}

START_TEST(a_large_message_counts_as_it_unpacks)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT, *back;
	Npumem__V1__FreeRequest message = NPUMEM__V1__FREE_REQUEST__INIT;
	Npumem__V1__Ref refs[500], *list[500];
	uint8_t bytes[16384];
	size_t n;

	for (unsigned i = 0; i < 500; i++) {
		npumem__v1__ref__init(&refs[i]);
		list[i] = &refs[i];
		refs[i].handle = i + 1;
		refs[i].name = i % 3 ? "x" : "";
	}
	message.n_tensors = 500;
	message.tensors = list;
	request.id = 7;
	request.call_case = NPUMEM__V1__REQUEST__CALL_FREE;
	request.free = &message;
	ck_assert_uint_le(npumem__v1__request__get_packed_size(&request), sizeof(bytes));
	n = npumem__v1__request__pack(&request, bytes);
	back = npumem__v1__request__unpack(NULL, n, bytes);
	ck_assert_uint_eq(count_set(&back->base), 2 + 500 + 500 + 333);
	ck_assert_uint_eq(count(bytes, n), count_set(&back->base));
	npumem__v1__request__free_unpacked(back, NULL);
}
END_TEST

Suite *suite_fields(void)
{
	Suite *suite = suite_create("proto/fields");
	TCase *tcase = tcase_create("all");

	tcase_add_test(tcase, each_field_counts);
	tcase_add_test(tcase, a_packed_list_counts_by_its_bytes);
	tcase_add_test(tcase, what_is_malformed_counts_as_far_as_it_goes);
	tcase_add_test(tcase, a_large_message_counts_as_it_unpacks);
	suite_add_tcase(suite, tcase);
	return suite;
}
