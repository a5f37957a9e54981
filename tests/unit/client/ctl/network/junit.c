#include "client/ctl/core/network/junit.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

START_TEST(suites_and_failures)
{
	static const struct junit_case cases[] = {
		{"[aligned]", "conv1", 0.25, NULL},
		{"[aligned]", "a<b>&\"c\"\n", 0, "y is 1 < 2 & \"so\""},
		{"[compact]", "conv1", 0, NULL},
	};
	static const char expected[] =
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<testsuites>\n"
		"  <testsuite name=\"[aligned]\" tests=\"2\" failures=\"1\">\n"
		"    <testcase classname=\"net\" name=\"conv1\" time=\"0.250000\"/>\n"
		"    <testcase classname=\"net\" name=\"a&lt;b&gt;&amp;&quot;c&quot; \" time=\"0.000000\">\n"
		"      <failure message=\"y is 1 &lt; 2 &amp; &quot;so&quot;\"/>\n"
		"    </testcase>\n"
		"  </testsuite>\n"
		"  <testsuite name=\"[compact]\" tests=\"1\" failures=\"0\">\n"
		"    <testcase classname=\"net\" name=\"conv1\" time=\"0.000000\"/>\n"
		"  </testsuite>\n"
		"</testsuites>\n";
	char path[] = "/tmp/npumem-junit-XXXXXX", is[sizeof(expected) + 1] = "";
	int fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(junit_write(path, "net", cases, 3, NULL), 0);
	ck_assert_int_eq(read(fd, is, sizeof(is) - 1), (ssize_t)sizeof(expected) - 1);
	ck_assert_str_eq(is, expected);
	close(fd);
	unlink(path);
}
END_TEST

START_TEST(no_such_folder)
{
	struct npumem_error error = {.status = 0};
	ck_assert_int_eq(junit_write("/nonexistent/j.xml", "net", NULL, 0, &error), NPUMEM_INTERNAL);
	ck_assert_str_eq(error.message, "/nonexistent/j.xml: No such file or directory");
}
END_TEST

Suite *suite_junit(void)
{
	Suite *suite = suite_create("client/ctl/network/junit");
	TCase *tcase = tcase_create("junit");
	tcase_add_test(tcase, suites_and_failures);
	tcase_add_test(tcase, no_such_folder);
	suite_add_tcase(suite, tcase);
	return suite;
}
