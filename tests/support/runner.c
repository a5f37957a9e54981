#include "tests/support/runner.h"

#include <stdlib.h>

int main(void)
{
	/* libcheck's own 4 seconds are too few for a sanitizer's build on a busy machine; ctest bounds the whole.
	 */
	setenv("CK_DEFAULT_TIMEOUT", "60", 0);
	SRunner *runner = srunner_create(NULL);
	for (suite_function *const *suite = runner_suites; *suite; suite++)
		srunner_add_suite(runner, (*suite)());
	srunner_run_all(runner, CK_NORMAL);
	/* A runner that has lost its suites must not look like one that passed. */
	int failed = srunner_ntests_failed(runner) + (srunner_ntests_run(runner) == 0);
	srunner_free(runner);
	return failed != 0;
}
