#include "client/ctl/core/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "tests/support/test.h"

enum { ITEMS = 1000 };

TEST(items_are_zeroed_and_stay)
{
	unsigned *items = NULL;
	for (unsigned i = 0; i < ITEMS; i++) {
		unsigned *item = memory_grow(&items, i, sizeof(*items));
		ck_assert_uint_eq(*item, 0);
		*item = i + 1;
	}
	for (unsigned i = 0; i < ITEMS; i++)
		ck_assert_uint_eq(items[i], i + 1);
	const char *zeroed = memory_new(ITEMS, 1);
	for (unsigned i = 0; i < ITEMS; i++)
		ck_assert(!zeroed[i]);
	memory_end();
}

TEST(a_text_is_as_long_as_it_takes)
{
	char *text = memory_text("%0*d", ITEMS, 1);
	ck_assert_uint_eq(strlen(text), ITEMS);
	memory_free(memory_text("%s", ""));
	memory_free(NULL);
	ck_assert_str_eq(text + ITEMS - 2, "01");
	memory_end();
	memory_end();
}

TEST(what_is_too_large_is_refused)
{
	ck_assert_ptr_null(memory_data(SIZE_MAX, 2));
	ck_assert_ptr_null(memory_data(SIZE_MAX - 1, 1));
	void *data = memory_data(3, sizeof(double));
	ck_assert_ptr_nonnull(data);
	memory_end();
}

/* Without an end of it, a sanitizer or valgrind says what was not given back. */
TEST(json_lies_in_it)
{
	for (unsigned i = 0; i < ITEMS; i++) {
		json_t *json = json_pack("{s:s, s:[i, i]}", "a", "text", "b", 1, 2);
		ck_assert_ptr_nonnull(json);
		json_decref(i % 2 ? json : NULL);
		memory_end();
	}
}

TEST(without_memory_the_program_ends)
{
	char said[64] = "";
	int status, ends[2];
	ck_assert_int_eq(pipe(ends), 0);
	pid_t child = fork();
	ck_assert_int_ge(child, 0);
	if (!child) {
		dup2(ends[1], STDERR_FILENO);
		memory_new(SIZE_MAX, 2);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE);
	ck_assert_int_gt(read(ends[0], said, sizeof(said) - 1), 0);
	ck_assert_str_eq(said, "npumemctl: no memory\n");
}
