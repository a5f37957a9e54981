/* Runs the tests of a program, in two processes at once, each with those of every other file. libcheck writes
 * every assertion that holds into a file, so that it can say where a test was when it crashed: a system call for
 * each of the million that loops make. Here only the last one is remembered, and written when the test's process
 * is struck by a signal.
 *
 * Each test has a process of its own. Under the address sanitizer, where the search for leaks at the end of a
 * process takes longer than most tests, they share the part's, but for those that end by a signal or ask for one.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.h"

/* The linker lets the tests call the first for libcheck's, which is the second. */
void __wrap__mark_point(const char *file, int line);
void __real__mark_point(const char *file, int line);

enum { PARTS = 2 };
enum outcome { PASSED, FAILED, NONE }; /* of a part; NONE: it has no test that is asked for */
enum { MARKED = 64 }; /* of a test that hangs it is said where it was, unless it is in such a loop */

static struct {
	const char *file;
	int line;
	unsigned n;
} last;

static struct test *tests, **tests_end = &tests;
static struct test_fixture *fixtures;

void test_add(struct test *test)
{
	*tests_end = test;
	tests_end = &test->next;
}

void test_add_fixture(struct test_fixture *fixture)
{
	fixture->next = fixtures;
	fixtures = fixture;
}

void __wrap__mark_point(const char *file, int line)
{
	last.file = file;
	last.line = line;
	if (last.n++ < MARKED)
		__real__mark_point(file, line);
}

static void on_crash(int number)
{
	if (last.file)
		__real__mark_point(last.file, last.line);
	raise(number);
}

/* A sanitizer has its own handlers, and says more. */
static void catch_crashes(void)
{
	static const int numbers[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV};
	struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_RESETHAND | SA_NODEFER};
	struct sigaction before;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!sigaction(numbers[i], NULL, &before) && before.sa_handler == SIG_DFL)
			sigaction(numbers[i], &action, NULL);
}

static bool is_of(const struct test *test, const char *file)
{
	return file && !strcmp(test->function->file, file);
}

/* A case of its own, so that CK_RUN_CASE can name it. */
static TCase *make_case(const struct test *test)
{
	TCase *tcase = tcase_create(test->function->name);

	if (test->is_slow)
		tcase_set_tags(tcase, "slow");
	if (test->is_unbounded)
		tcase_set_timeout(tcase, 0);
	for (const struct test_fixture *fixture = fixtures; fixture; fixture = fixture->next)
		if (is_of(test, fixture->file) && fixture->is_once)
			tcase_add_unchecked_fixture(tcase, fixture->set_up, fixture->tear_down);
		else if (is_of(test, fixture->file))
			tcase_add_checked_fixture(tcase, fixture->set_up, fixture->tear_down);
	_tcase_add_test(tcase, test->function, test->signal, 0, test->from, test->to ? test->to : 1);
	return tcase;
}

/* Of tests/unit/daemon/rpc/turns.c: daemon/rpc/turns.c. */
static Suite *make_suite(const char *file)
{
	const char *name = strstr(file, "tests/unit/");

	return suite_create(name ? name + strlen("tests/unit/") : file);
}

/* A part's tests that have a process of their own, or those that share one. */
static enum outcome run_some(unsigned part, bool is_shared)
{
	SRunner *runner = srunner_create(NULL);
	const char *file = NULL;
	Suite *suite = NULL;
	unsigned n_files = 0;

	for (const struct test *test = tests; test; test = test->next) {
		if (!is_of(test, file)) {
			file = test->function->file;
			suite = NULL;
			n_files++;
		}
		bool is_alone = !IS_SANITIZED || test->is_alone || test->signal;
		if (n_files % PARTS != part || is_alone == is_shared)
			continue;
		if (!suite)
			srunner_add_suite(runner, suite = make_suite(file));
		suite_add_tcase(suite, make_case(test));
	}
	if (is_shared)
		srunner_set_fork_status(runner, CK_NOFORK);
	srunner_run_all(runner, CK_NORMAL);
	enum outcome outcome = srunner_ntests_failed(runner) ? FAILED : srunner_ntests_run(runner) ? PASSED : NONE;
	srunner_free(runner);
	return outcome;
}

static enum outcome run(unsigned part)
{
	enum outcome of_own = run_some(part, false), shared = IS_SANITIZED ? run_some(part, true) : NONE;

	return of_own == FAILED || shared == FAILED ? FAILED : of_own == PASSED ? PASSED : shared;
}

static pid_t start(unsigned part)
{
	pid_t parent = getpid(), pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	exit(getppid() == parent ? (int)run(part) : FAILED);
}

int main(void)
{
	unsigned n_passed = 0, n_failed = 0;
	pid_t parts[PARTS];
	/* libcheck's own 4 seconds are too few for a sanitizer's build on a busy machine; ctest bounds the whole.
	 */
	setenv("CK_DEFAULT_TIMEOUT", "240", 0);
	catch_crashes();
	for (unsigned i = 0; i < PARTS; i++)
		parts[i] = start(i);
	for (unsigned i = 0; i < PARTS; i++) {
		int status = 0;
		bool ended = parts[i] > 0 && waitpid(parts[i], &status, 0) == parts[i] && WIFEXITED(status);
		n_passed += ended && WEXITSTATUS(status) == PASSED;
		n_failed += !ended || (WEXITSTATUS(status) != PASSED && WEXITSTATUS(status) != NONE);
	}
	/* A runner that has lost its suites must not look like one that passed. */
	return n_failed || !n_passed;
}
