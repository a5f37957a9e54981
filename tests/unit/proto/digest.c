/* What of an answer is compared, and what is not. */
#include "proto/digest.h"

#include "tests/support/message.h"
#include "tests/support/test.h"

static uint64_t digest_of(unsigned result, void *message)
{
	Npumem__V1__Response response = {MESSAGE(response), .result_case = result, .done = message, .id = 12};
	return digest_response(&response);
}

TEST(what_an_operation_counts_and_reads)
{
	Npumem__V1__Done plain = NPUMEM__V1__DONE__INIT, done;
	uint64_t digest = digest_of(NPUMEM__V1__RESPONSE__RESULT_DONE, &plain);
	uint8_t data[] = {1, 2, 3};
	ck_assert_uint_ne(digest, digest_begin());
	/* Not when it ran, nor what it says for people. */
	done = plain;
	done.start_ns = 5;
	done.end_ns = 7;
	done.warning = (char *)(uintptr_t) "damaged";
	ck_assert_uint_eq(digest_of(NPUMEM__V1__RESPONSE__RESULT_DONE, &done), digest);
	for (unsigned i = 0; i < 5; i++) {
		done = plain;
		done.saturated = i == 0;
		done.wrapped = i == 1;
		done.divided_by_zero = i == 2;
		done.macs = i == 3;
		if (i == 4)
			done.data = (ProtobufCBinaryData){1, data};
		ck_assert_uint_ne(digest_of(NPUMEM__V1__RESPONSE__RESULT_DONE, &done), digest);
	}
	done = plain;
	done.data = (ProtobufCBinaryData){3, data};
	digest = digest_of(NPUMEM__V1__RESPONSE__RESULT_DONE, &done);
	data[2] = 4;
	ck_assert_uint_ne(digest_of(NPUMEM__V1__RESPONSE__RESULT_DONE, &done), digest);
}

/* As the daemon does, without the answer. */
TEST(put_together_from_its_parts)
{
	Npumem__V1__Done done[2] = {NPUMEM__V1__DONE__INIT, NPUMEM__V1__DONE__INIT},
			 *list[] = {&done[0], &done[1]};
	uint8_t data[] = "123456789";
	ck_assert_uint_eq(digest_crc(0, data, 9), 0xcbf43926);
	ck_assert_uint_eq(digest_crc(digest_crc(0, data, 4), data + 4, 5), 0xcbf43926);
	ck_assert_uint_eq(digest_crc(7, NULL, 0), 7);
	done[0].macs = 8;
	done[1].data = (ProtobufCBinaryData){9, data};
	Npumem__V1__Submitted submitted = {MESSAGE(submitted), .n_done = 2, .done = list};
	uint64_t digest = digest_number(digest_begin(), digest_done(&done[0], 0));
	ck_assert_uint_eq(digest_of(NPUMEM__V1__RESPONSE__RESULT_DONE, &done[0]), digest);
	digest = digest_number(digest, digest_done(&done[1], 0xcbf43926));
	ck_assert_uint_eq(digest_of(NPUMEM__V1__RESPONSE__RESULT_SUBMITTED, &submitted), digest);
	list[0] = &done[1];
	list[1] = &done[0];
	ck_assert_uint_ne(digest_of(NPUMEM__V1__RESPONSE__RESULT_SUBMITTED, &submitted), digest);
	submitted.n_done = 0;
	ck_assert_uint_eq(digest_of(NPUMEM__V1__RESPONSE__RESULT_SUBMITTED, &submitted), digest_begin());
}

TEST(tensors_by_number_not_by_place)
{
	Npumem__V1__Tensor tensors[3] = {NPUMEM__V1__TENSOR__INIT, NPUMEM__V1__TENSOR__INIT,
					 NPUMEM__V1__TENSOR__INIT},
			   *list[] = {&tensors[0], &tensors[1], &tensors[2]};
	Npumem__V1__Freed freed = NPUMEM__V1__FREED__INIT;
	uint64_t handles[3] = {0}, digest;
	for (unsigned i = 0; i < 3; i++)
		tensors[i].handle = 10 + i;
	Npumem__V1__Allocated allocated = {MESSAGE(allocated), .n_tensors = 3, .tensors = list};
	Npumem__V1__Response response = {MESSAGE(response), .result_case = NPUMEM__V1__RESPONSE__RESULT_ALLOCATED,
					 .allocated = &allocated};
	ck_assert_uint_eq(digest_handles(&response, handles, 2), 3);
	ck_assert_uint_eq(handles[1], 11);
	ck_assert_uint_eq(handles[2], 0);
	digest = digest_response(&response);
	tensors[1].handle = 99;
	ck_assert_uint_eq(digest_response(&response), digest);
	allocated.n_tensors = 2;
	ck_assert_uint_ne(digest_response(&response), digest);
	response.result_case = NPUMEM__V1__RESPONSE__RESULT_TENSOR;
	response.tensor = &tensors[2];
	ck_assert_uint_eq(digest_response(&response), digest_begin());
	ck_assert_uint_eq(digest_handles(&response, handles, 3), 1);
	ck_assert_uint_eq(handles[0], 12);
	ck_assert_uint_eq(digest_handles(&response, NULL, 0), 1);
	freed.tensors = 2;
	ck_assert_uint_ne(digest_of(NPUMEM__V1__RESPONSE__RESULT_FREED, &freed), digest_begin());
	ck_assert_uint_eq(digest_of(NPUMEM__V1__RESPONSE__RESULT__NOT_SET, NULL), digest_begin());
	response.result_case = NPUMEM__V1__RESPONSE__RESULT_FREED;
	ck_assert_uint_eq(digest_handles(&response, handles, 3), 0);
}
