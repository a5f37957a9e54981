/* The tests of a unit test runner: TEST in front of a function's body is all that it needs to be run.
 *
 *	TEST(a_name) { ... }
 *	TEST(another_name, .to = 4) { ... uses _i ... }
 *	FIXTURE(set_up, tear_down)
 *	FIXTURE_OBJECT(struct crowd, crowd, crowd_init(&crowd), crowd_deinit(&crowd))
 *
 * CK_RUN_SUITE=daemon/rpc/turns.c runs those of one file, CK_RUN_CASE=a_name the one of this name. */
#ifndef TESTS_SUPPORT_TEST_H
#define TESTS_SUPPORT_TEST_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The address sanitizer is for the code and not for its values: of cases that take the same way it has some. */
#ifdef __SANITIZE_ADDRESS__
enum { IS_SANITIZED = true };
#else
enum { IS_SANITIZED = false };
#endif

struct test {
	const TTest *function;
	int from, to;	   /* it is run for each _i from `from` to `to` - 1; to 0: once */
	int signal;	   /* which it must end by; 0: none */
	bool is_slow;	   /* has the tag `slow` */
	bool is_alone;	   /* it has a process of its own in every build, for what it finds or leaves there */
	bool is_unbounded; /* by a time of its own: ctest's bounds it */
	struct test *next;
};

/* What runs before and after each test of a file, or once before and after all rounds of each; either may be NULL.
 */
struct test_fixture {
	const char *file;
	SFun set_up, tear_down;
	bool is_once;
	struct test_fixture *next;
};

void test_add(struct test *test);
void test_add_fixture(struct test_fixture *fixture);

#define TEST(name, ...)                                                                                           \
	static void name(int _i);                                                                                 \
	static const TTest name##_function = {#name, name, __FILE__, __LINE__};                                   \
	__attribute__((constructor)) static void name##_add(void)                                                 \
	{                                                                                                         \
		static struct test test;                                                                          \
		test = (struct test){.function = &name##_function, __VA_ARGS__};                                  \
		test_add(&test);                                                                                  \
	}                                                                                                         \
	static void name(int _i __attribute__((unused)))

#define FIXTURE(before, after, ...)                                                                               \
	__attribute__((constructor)) static void add_fixture(void)                                                \
	{                                                                                                         \
		static struct test_fixture fixture;                                                               \
		fixture = (struct test_fixture){                                                                  \
			.file = __FILE__, .set_up = before, .tear_down = after, __VA_ARGS__};                     \
		test_add_fixture(&fixture);                                                                       \
	}

/* What reads a variable of a function that has ended finds nothing of it. */
static __attribute__((noinline, unused)) void test_spoil_stack(void)
{
	uint8_t stack[64 << 10];
	memset(stack, 0xa5, sizeof(stack));
	__asm__ volatile("" : : "r"(stack) : "memory");
}

/* Each test of the file, also where this stands in a header of its, has an object of its own: `open` runs before
 * the test, `close` after it. What `open` leaves out is no zero. */
#define FIXTURE_OBJECT(type, name, open, close)                                                                   \
	static type name;                                                                                         \
	static void name##_before(void)                                                                           \
	{                                                                                                         \
		memset(&name, 0xa5, sizeof(name));                                                                \
		open;                                                                                             \
	}                                                                                                         \
	static void name##_after(void)                                                                            \
	{                                                                                                         \
		test_spoil_stack();                                                                               \
		close;                                                                                            \
		memset(&name, 0xa5, sizeof(name));                                                                \
	}                                                                                                         \
	__attribute__((constructor)) static void name##_add_fixture(void)                                         \
	{                                                                                                         \
		static struct test_fixture fixture = {                                                            \
			.file = __BASE_FILE__, .set_up = name##_before, .tear_down = name##_after};               \
		test_add_fixture(&fixture);                                                                       \
	}

#endif
