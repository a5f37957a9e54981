#include "client/ctl/core/devices/list.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

static char *printed(const struct labelled *list, unsigned n)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	ck_assert_ptr_nonnull(out);
	labels_print(out, list, n);
	fclose(out);
	return text;
}

TEST(a_metric_once)
{
	static const char one[] = "# HELP a_total A.\n# TYPE a_total counter\na_total 1\na_total{x=\"{} y\"} 2\n"
				  "# HELP b B.\n# TYPE b gauge\nb 3\n";
	static const char other[] = "# HELP a_total A.\n# TYPE a_total counter\na_total 5\n"
				    "# HELP b B.\n# TYPE b gauge\n";
	static const struct labelled list[] = {{"m", one}, {"gone", NULL}, {"n\"\\", other}};
	char *text = printed(list, 3);
	ck_assert_str_eq(text, "# HELP npumem_up Whether the device answered.\n# TYPE npumem_up gauge\n"
			       "npumem_up{device=\"m\"} 1\nnpumem_up{device=\"gone\"} 0\n"
			       "npumem_up{device=\"n\\\"\\\\\"} 1\n"
			       "# HELP a_total A.\n# TYPE a_total counter\na_total{device=\"m\"} 1\n"
			       "a_total{device=\"m\",x=\"{} y\"} 2\na_total{device=\"n\\\"\\\\\"} 5\n"
			       "# HELP b B.\n# TYPE b gauge\nb{device=\"m\"} 3\n");
	free(text);
}

/* A name that begins as another's is another. */
TEST(metrics_that_one_lacks)
{
	static const char one[] = "# HELP a A.\n# TYPE a gauge\na 1\n# HELP c C.\n# TYPE c gauge\nc 1\n";
	static const char other[] = "# HELP ab A.\n# TYPE ab gauge\nab 2\n# HELP c C.\n# TYPE c gauge\nc 2\n";
	static const struct labelled list[] = {{"m", one}, {"n", other}};
	char *text = printed(list, 2);
	ck_assert_ptr_nonnull(strstr(text, "a{device=\"m\"} 1\n"));
	ck_assert_ptr_nonnull(strstr(text, "ab{device=\"n\"} 2\n"));
	ck_assert_ptr_nonnull(strstr(text, "c{device=\"m\"} 1\nc{device=\"n\"} 2\n"));
	const char *first = strstr(text, "# HELP c ");
	ck_assert_ptr_nonnull(first);
	ck_assert_ptr_null(strstr(first + 1, "# HELP c "));
	free(text);
}

TEST(text_that_is_none)
{
	static const char *const odd[] = {"", "x", "\n\n", "# HELP", "# HELP a", "# HELP a\n", "# HELP a A.\n{\n"};
	for (unsigned i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		const struct labelled list[] = {{"m", odd[i]}, {"n", odd[i]}};
		free(printed(list, 2));
	}
	free(printed(NULL, 0));
}