#include "proto/outline.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "proto/npumem.pb-c.h"
#include "tests/support/message.h"
#include "tests/support/test.h"

/* A Done with that much data, and facts on both sides of it. */
static void done_init(Npumem__V1__Done *done, uint8_t *data, size_t n)
{
	npumem__v1__done__init(done);
	done->saturated = 5;
	done->warning = (char *)(uintptr_t) "w";
	done->data = (ProtobufCBinaryData){n, data};
	done->end_ns = UINT64_C(1) << 40;
}

/* Packs and outlines; the caller frees by protobuf. */
static Npumem__V1__Response *outlined(const Npumem__V1__Response *response, size_t *bytes)
{
	size_t n = npumem__v1__response__get_packed_size(response);
	uint8_t *packed = malloc(n), *out = malloc(n);
	npumem__v1__response__pack(response, packed);
	*bytes = outline_response(packed, n, NULL);
	ck_assert_uint_le(*bytes, n);
	ck_assert_uint_eq(outline_response(packed, n, out), *bytes);
	Npumem__V1__Response *read = npumem__v1__response__unpack(NULL, *bytes, out);
	ck_assert_ptr_nonnull(read);
	free(packed);
	free(out);
	return read;
}

static void is_outline(const Npumem__V1__Done *done)
{
	ck_assert_int_eq(done->saturated, 5);
	ck_assert_str_eq(done->warning, "w");
	ck_assert_uint_eq(done->data.len, 0);
	ck_assert_uint_eq(done->end_ns, UINT64_C(1) << 40);
}

TEST(a_read_s_answer_has_all_but_the_data)
{
	static const size_t sizes[] = {0, 1, 127, 128, 70000};
	static uint8_t data[70000];
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		Npumem__V1__Response response = NPUMEM__V1__RESPONSE__INIT, *read;
		Npumem__V1__Done done;
		size_t bytes;
		done_init(&done, data, sizes[i]);
		response.id = 300;
		response.result_case = NPUMEM__V1__RESPONSE__RESULT_DONE;
		response.done = &done;
		read = outlined(&response, &bytes);
		ck_assert_uint_lt(bytes, 64);
		ck_assert_uint_eq(read->id, 300);
		is_outline(read->done);
		npumem__v1__response__free_unpacked(read, NULL);
	}
}

TEST(each_operation_of_a_list_loses_its_own)
{
	static uint8_t data[300];
	Npumem__V1__Response response = NPUMEM__V1__RESPONSE__INIT, *read;
	Npumem__V1__Done done[3], *list[3] = {&done[0], &done[1], &done[2]};
	size_t bytes;
	for (size_t i = 0; i < 3; i++)
		done_init(&done[i], data, 150 * i);
	Npumem__V1__Submitted submitted = {MESSAGE(submitted), .n_done = 3, .done = list};
	response.result_case = NPUMEM__V1__RESPONSE__RESULT_SUBMITTED;
	response.submitted = &submitted;
	response.message = (char *)(uintptr_t) "why";
	read = outlined(&response, &bytes);
	ck_assert_str_eq(read->message, "why");
	ck_assert_uint_eq(read->submitted->n_done, 3);
	for (size_t i = 0; i < 3; i++)
		is_outline(read->submitted->done[i]);
	npumem__v1__response__free_unpacked(read, NULL);
}

/* The same number elsewhere is something else. */
TEST(other_answers_stay_whole)
{
	Npumem__V1__Response response = NPUMEM__V1__RESPONSE__INIT, *read;
	Npumem__V1__Tensor tensor = NPUMEM__V1__TENSOR__INIT;
	size_t bytes;
	tensor.handle = 9;
	tensor.pinned = true; /* its seventh member */
	response.result_case = NPUMEM__V1__RESPONSE__RESULT_TENSOR;
	response.tensor = &tensor;
	read = outlined(&response, &bytes);
	ck_assert_uint_eq(bytes, npumem__v1__response__get_packed_size(&response));
	ck_assert(read->tensor->pinned);
	npumem__v1__response__free_unpacked(read, NULL);
}

TEST(what_is_no_message_has_none)
{
	static const struct {
		const char *bytes;
		size_t n;
	} bad[] = {{"\x72", 1},
		   {"\x72\x05\x01", 3},
		   {"\x80", 1},
		   {"\x77", 1},
		   {"\x08\x80", 2},
		   {"\x09\x01", 2},
		   {"\x72\x02\x3a\x09", 4},
		   {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11}};
	uint8_t out[16];
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		ck_assert_uint_eq(outline_response((const uint8_t *)bad[i].bytes, bad[i].n, NULL), 0);
		ck_assert_uint_eq(outline_response((const uint8_t *)bad[i].bytes, bad[i].n, out), 0);
	}
	ck_assert_uint_eq(outline_response((const uint8_t *)"", 0, NULL), 0);
}
