/* Runs the suites. libcheck writes every assertion that holds into a file, so that it can say where a test was
 * when it crashed: a system call for each of the million that loops make. Here only the last one is remembered,
 * and written when the test's process is struck by a signal. */
#include "tests/support/runner.h"

#include <signal.h>
#include <stdlib.h>

/* The linker lets the tests call the first for libcheck's, which is the second. */
void __wrap__mark_point(const char *file, int line);
void __real__mark_point(const char *file, int line);

enum { MARKED = 64 }; /* of a test that hangs it is said where it was, unless it is in such a loop */

static struct {
	const char *file;
	int line;
	unsigned n;
} last;

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

int main(void)
{
	/* libcheck's own 4 seconds are too few for a sanitizer's build on a busy machine; ctest bounds the whole.
	 */
	setenv("CK_DEFAULT_TIMEOUT", "60", 0);
	catch_crashes();
	SRunner *runner = srunner_create(NULL);
	for (suite_function *const *suite = runner_suites; *suite; suite++)
		srunner_add_suite(runner, (*suite)());
	srunner_run_all(runner, CK_NORMAL);
	/* A runner that has lost its suites must not look like one that passed. */
	int failed = srunner_ntests_failed(runner) + (srunner_ntests_run(runner) == 0);
	srunner_free(runner);
	return failed != 0;
}
