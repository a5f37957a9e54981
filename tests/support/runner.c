/* Runs the suites, in two processes at once, each with every other one. libcheck writes every assertion that holds
 * into a file, so that it can say where a test was when it crashed: a system call for each of the million that
 * loops make. Here only the last one is remembered, and written when the test's process is struck by a signal. */
#include "tests/support/runner.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* The suites of one part. */
static enum outcome run(unsigned part)
{
	SRunner *runner = srunner_create(NULL);
	for (unsigned i = 0; runner_suites[i]; i++)
		if (i % PARTS == part)
			srunner_add_suite(runner, runner_suites[i]());
	srunner_run_all(runner, CK_NORMAL);
	enum outcome outcome = srunner_ntests_failed(runner) ? FAILED : srunner_ntests_run(runner) ? PASSED : NONE;
	srunner_free(runner);
	return outcome;
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
