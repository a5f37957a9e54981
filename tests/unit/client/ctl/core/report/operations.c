#include "client/ctl/core/report/report.h"

#include <stdbool.h>

#include "tests/support/test.h"

static json_t *rows_of(const char *entries)
{
	json_t *list = json_loads(entries, 0, NULL), *rows;
	ck_assert_ptr_nonnull(list);
	rows = operations_of(list);
	ck_assert_ptr_nonnull(rows);
	json_decref(list);
	return rows;
}

#define ALLOC                                                                                                     \
	"{\"number\":1,\"uid\":5,\"request\":{\"alloc\":{}},\"answer\":{\"allocated\":{\"tensors\":["             \
	"{\"handle\":\"a\",\"name\":\"x\",\"uid\":5},{\"handle\":\"b\",\"name\":\"y\",\"uid\":5}]}}}"
#define RUN(number, uid, name, queue, came, start, end)                                                           \
	"{\"number\":" #number ",\"uid\":" #uid ",\"came_ns\":" #came ",\"request\":{" queue                      \
	":{\"tensor\":{\"name\":\"" name "\"}}},\"answer\":{\"done\":{\"start_ns\":" #start ",\"end_ns\":" #end   \
	"}}}"

static const char *handle_of(const json_t *row)
{
	return json_string_value(json_array_get(json_array_get(json_object_get(row, "tensors"), 0), 1));
}

TEST(names_are_of_who_asks)
{
	json_t *rows = rows_of("[" ALLOC "," RUN(2, 5, "x", "\"read\"", 1, 2, 3) "," RUN(
		3, 6, "x", "\"read\"", 3, 4, 5) "," RUN(4, 6, "5:y", "\"fill\"", 5, 6, 7) "]");
	ck_assert_uint_eq(json_array_size(rows), 3);
	ck_assert_str_eq(handle_of(json_array_get(rows, 0)), "a");
	ck_assert_str_eq(handle_of(json_array_get(rows, 1)), "");
	ck_assert_str_eq(handle_of(json_array_get(rows, 2)), "b");
	json_decref(rows);
}

static void waits(const char *entries, json_int_t found, const char *why)
{
	json_t *rows = rows_of(entries);
	const json_t *row = json_array_get(rows, json_array_size(rows) - 1),
		     *waited = json_object_get(row, "waited_for");
	ck_assert_int_eq(waited ? json_integer_value(waited) : -1, found);
	if (why)
		ck_assert_str_eq(json_string_value(json_object_get(row, "why")), why);
	json_decref(rows);
}

TEST(what_was_waited_for)
{
	/* The one that wrote the same tensor, although another of the queue ended later. */
	waits("[" ALLOC "," RUN(2, 5, "x", "\"fill\"", 1, 2, 6) "," RUN(3, 5, "y", "\"fill\"", 1, 6, 8) "," RUN(
		      4, 5, "x", "\"read\"", 3, 8, 9) "]",
	      0, "tensor");
	/* Two reads of one tensor do not conflict. */
	waits("[" ALLOC "," RUN(2, 5, "x", "\"read\"", 1, 2, 6) "," RUN(3, 5, "x", "\"read\"", 3, 8, 9) "]", 0,
	      "queue");
	/* It had ended before, or ends afterwards, or nothing was waited for. */
	waits("[" ALLOC "," RUN(2, 5, "x", "\"fill\"", 1, 2, 3) "," RUN(3, 5, "x", "\"read\"", 3, 8, 9) "]", -1,
	      NULL);
	waits("[" ALLOC "," RUN(2, 5, "x", "\"fill\"", 1, 2, 9) "," RUN(3, 5, "x", "\"read\"", 3, 8, 9) "]", -1,
	      NULL);
	waits("[" ALLOC "," RUN(2, 5, "x", "\"fill\"", 1, 2, 3) "," RUN(3, 5, "x", "\"read\"", 3, 3, 9) "]", -1,
	      NULL);
}

TEST(odd_entries_are_no_operations)
{
	json_t *rows = rows_of(
		"[{}, 3, {\"request\":7}, {\"request\":{\"submit\":{\"operations\":[]}},\"answer\":{\"submitted\":"
		"{\"done\":[{\"operation\":-4},{\"operation\":9}]}}}, "
		"{\"request\":{\"read\":{}},\"status\":\"INVALID\"},"
		"{\"request\":{\"run\":{\"kernel\":\"NONE\",\"operands\":[{}]}}}]");
	ck_assert_uint_eq(json_array_size(rows), 1);
	ck_assert_str_eq(json_string_value(json_object_get(json_array_get(rows, 0), "name")), "none");
	json_decref(rows);
}
