#include "client/ctl/core/sweep/sweep.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/test.h"

static const struct sweep_part part = {"0a", "0b", "0c", 2, 4, 3, 1.5};

TEST(suites_and_failures)
{
	static const struct junit_case cases[] = {
		{0, "net", "[aligned]", "conv1", 0.25, NULL},
		{0, "net", "[aligned]", "a<b>&\"c\"\n", 0, "y is 1 < 2 & \"so\""},
		{2, "net", "[aligned]", "conv1", 0, NULL},
	};
	static const char expected[] =
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<!-- npumem sweep=0a split=0b run=0c shard=2/4 items=3 time=1.500000 -->\n"
		"<testsuites>\n"
		"  <testsuite name=\"[aligned]\" id=\"0\" tests=\"2\" failures=\"1\">\n"
		"    <testcase classname=\"net\" name=\"conv1\" time=\"0.250000\"/>\n"
		"    <testcase classname=\"net\" name=\"a&lt;b&gt;&amp;&quot;c&quot; \" time=\"0.000000\">\n"
		"      <failure message=\"y is 1 &lt; 2 &amp; &quot;so&quot;\"/>\n"
		"    </testcase>\n"
		"  </testsuite>\n"
		"  <testsuite name=\"[aligned]\" id=\"2\" tests=\"1\" failures=\"0\">\n"
		"    <testcase classname=\"net\" name=\"conv1\" time=\"0.000000\"/>\n"
		"  </testsuite>\n"
		"</testsuites>\n";
	char path[] = "/tmp/npumem-junit-XXXXXX", is[sizeof(expected) + 1] = "";
	int fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(junit_write(path, &part, cases, 3, NULL), 0);
	ck_assert_int_eq(read(fd, is, sizeof(is) - 1), (ssize_t)sizeof(expected) - 1);
	ck_assert_str_eq(is, expected);
	close(fd);
	unlink(path);
}

TEST(no_such_folder)
{
	struct npumem_error error = {.status = 0};
	ck_assert_int_eq(junit_write("/nonexistent/j.xml", &part, NULL, 0, &error), NPUMEM_INTERNAL);
	ck_assert_str_eq(error.message, "/nonexistent/j.xml: No such file or directory");
}
