#include <string.h>

#include "client/lib/messages/reply.h"
#include "tests/support/test.h"

TEST(text_is_cut_and_cleaned)
{
	char to[8];
	convert_text_from("short", to, sizeof(to));
	ck_assert_str_eq(to, "short");
	convert_text_from("a\nb\tc\033d", to, sizeof(to));
	ck_assert_str_eq(to, "a?b?c?d");
	convert_text_from("a\xc2\x9b"
			  "2\xc3\xbc",
			  to, sizeof(to));
	ck_assert_str_eq(to, "a?2\xc3\xbc");
	convert_text_from("far too long", to, sizeof(to));
	ck_assert_str_eq(to, "far too");
	convert_text_from(NULL, to, sizeof(to));
	ck_assert_str_eq(to, "");
}

TEST(as_many_as_there_are)
{
	Npumem__V1__Done message = NPUMEM__V1__DONE__INIT;
	Npumem__V1__Destroyed one = NPUMEM__V1__DESTROYED__INIT, *list[100];
	struct result *results = NULL, *result = result_new(&memory_libc, &results, 64);
	one.total_bytes = 5;
	for (unsigned i = 0; i < 100; i++)
		list[i] = &one;
	message.n_destroyed = 100;
	message.destroyed = list;
	const struct npumem_done *done = reply_done(&message, result);
	ck_assert_uint_eq(done->n_destroyed, 100);
	ck_assert_int_eq(done->destroyed[99]->total_bytes, 5);
	ck_assert_str_eq(done->warning, "");
	result_unref(result);
	ck_assert_ptr_null(results);
}

TEST(a_tensor_that_may_not_be_seen)
{
	Npumem__V1__Tensor message = NPUMEM__V1__TENSOR__INIT;
	struct npumem_tensor tensor;
	message.uid = 5;
	ck_assert_int_eq(reply_tensor(&message, &tensor), 0);
	ck_assert_int_eq(tensor.place.dtype, 0);
	ck_assert_uint_eq(tensor.uid, 5);
}
