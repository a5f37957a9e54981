#include "client/lib/messages/result.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "tests/support/test.h"
#include "tests/unit/client/lib/failing.h"

TEST(objects_stay_where_they_are)
{
	struct result *list = NULL, *result = result_new(&memory_libc, &list, 100);
	unsigned char *objects[300];
	bool same = true;
	for (unsigned i = 0; i < 300; i++) {
		objects[i] = result_take(result, i);
		ck_assert_ptr_nonnull(objects[i]);
		ck_assert_uint_eq((uintptr_t)objects[i] % 16, 0);
		for (unsigned k = 0; k < i; k++)
			same &= !objects[i][k];
		memset(objects[i], (int)i, i);
	}
	for (unsigned i = 0; i < 300; i++)
		for (unsigned k = 0; k < i; k++)
			same &= objects[i][k] == (i & 255);
	ck_assert(same);
	ck_assert_ptr_null(result_array(result, SIZE_MAX / 2, 4));
	ck_assert_ptr_null(result_take(result, SIZE_MAX - 8));
	result_unref(result);
	ck_assert_ptr_null(list);
}

static unsigned ended;

static void on_end(void *object)
{
	ck_assert_str_eq(object, "first");
	ended++;
}

TEST(the_last_reference_ends_it)
{
	struct failing failing = {.fail_at = 0};
	const struct memory memory = {failing_resize, &failing};
	struct result *list = NULL, *first = result_new(&memory, &list, 64),
		      *second = result_new(&memory, &list, 0);
	const char *text = result_text(first, "first"), *far = result_take(first, 5000);
	first->destroy = on_end;
	result_keep(text);
	result_unref(first);
	ck_assert_uint_eq(ended, 0);
	result_keep(far);
	result_release(text);
	ck_assert_uint_eq(ended, 0);
	result_release(far);
	ck_assert_uint_eq(ended, 1);
	ck_assert_ptr_eq(list, second);
	result_release(NULL);
	/* At the end of a connection nobody is asked. */
	result_keep(result_take(second, 1));
	result_end_all(&list);
	ck_assert_ptr_null(list);
	ck_assert_int_eq(failing.live, 0);
}

TEST(what_was_reserved_is_there)
{
	struct failing failing = {.fail_at = 2};
	const struct memory memory = {failing_resize, &failing};
	struct result *list = NULL, *result = result_new(&memory, &list, result_room(100) + result_room(1));
	ck_assert_ptr_nonnull(result_take(result, 100));
	ck_assert_ptr_nonnull(result_take(result, 1));
	ck_assert_ptr_null(result_take(result, 1));
	result_reset(result);
	ck_assert_ptr_nonnull(result_take(result, 100));
	result_unref(result);
	ck_assert_int_eq(failing.live, 0);
}
