/* The main of every unit test runner: runs each suite of the table that CMake writes. */
#ifndef TESTS_SUPPORT_RUNNER_H
#define TESTS_SUPPORT_RUNNER_H

#include <check.h>

typedef Suite *suite_function(void);
extern suite_function *const runner_suites[]; /* ends with NULL */

#endif
