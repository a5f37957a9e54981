/* Structs of programs that were built with other versions of the library. */
#include "client/lib/messages/payload.h"

#include <string.h>

#include "tests/support/test.h"

/* The first version's, ours, and a later one's. */
struct old {
	size_t size;
	uint64_t a;
};
struct ours {
	size_t size;
	uint64_t a, b;
};
struct later {
	size_t size;
	uint64_t a, b, c;
};
enum { FIRST = SIZED_UP_TO(struct ours, a), KNOWN = sizeof(struct ours) };

TEST(an_older_program)
{
	const struct old old[] = {{sizeof(struct old), 1}, {sizeof(struct old), 2}, {sizeof(struct old), 3}};
	struct ours got = {.b = 9};
	ck_assert_int_eq(sized_check(old, 3, FIRST, KNOWN, "thing", NULL), 0);
	sized_get(old, 2, &got, KNOWN);
	ck_assert(got.a == 3 && got.b == 0);
}

TEST(a_later_program)
{
	struct later later[] = {{sizeof(struct later), 1, 2, 0}, {sizeof(struct later), 3, 4, 0}};
	struct npumem_error error = {0};
	struct ours got;
	ck_assert_int_eq(sized_check(later, 2, FIRST, KNOWN, "thing", NULL), 0);
	sized_get(later, 1, &got, KNOWN);
	ck_assert(got.a == 3 && got.b == 4);
	later[1].c = 1;
	ck_assert_int_eq(sized_check(later, 2, FIRST, KNOWN, "thing", &error), NPUMEM_INVALID);
	ck_assert_str_eq(error.message, "thing 1 asks for what this version of the library does not know");
}

TEST(sizes_that_cannot_be)
{
	static const size_t sizes[] = {0, 8, FIRST - 1, KNOWN + 1, 4104, SIZE_MAX};
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct ours ours = {.size = sizes[i]};
		ck_assert_int_eq(sized_check(&ours, 1, FIRST, KNOWN, "thing", NULL), NPUMEM_INVALID);
	}
	struct ours both[] = {{.size = sizeof(both[0])}, {.size = sizeof(struct old)}};
	ck_assert_int_eq(sized_check(both, 2, FIRST, KNOWN, "thing", NULL), NPUMEM_INVALID);
	ck_assert_int_eq(sized_check(NULL, 0, FIRST, KNOWN, "thing", NULL), 0);
}
