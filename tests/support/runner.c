#include "tests/support/runner.h"

int main(void)
{
	SRunner *runner = srunner_create(NULL);
	for (suite_function *const *suite = runner_suites; *suite; suite++)
		srunner_add_suite(runner, (*suite)());
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
