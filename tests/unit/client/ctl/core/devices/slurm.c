#include "client/ctl/core/devices/list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

/* "name=address\n" of each; freed by the caller. */
static char *listed(const char *line, uid_t uid, const char *node, int expected)
{
	const struct slurm_here here = {uid, node};
	struct npumem_error error = {.status = 0};
	struct devices devices = {.n = 0};
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	ck_assert_msg(slurm_add(&devices, line, &here, &error) == expected, "%s: %s", line, error.message);
	for (unsigned i = 0; i < devices.n; i++)
		fprintf(out, "%s=%s\n", devices.list[i].name, devices.list[i].address);
	fclose(out);
	devices_deinit(&devices);
	return text;
}

static void check_list(const char *line, uid_t uid, const char *node, const char *expected)
{
	char *text = listed(line, uid, node, 0);
	ck_assert_str_eq(text, expected);
	free(text);
}

TEST(here_and_elsewhere)
{
	check_list("7 7 0 n1 gres:npu:1", 0, "n1", "n1/7=/run/npumem/job-7.sock\n");
	check_list("7 7 0 n1 gres:npu:1", 0, "n2", "n1/7=ssh:n1:/run/npumem/job-7.sock\n");
	check_list("12 9_3 5 n1 gres:npu:sg2260:2", 5, "",
		   "n1/9_3=ssh:n1:/run/npumem/job-12.sock\nn1/9_3.1=ssh:n1:/run/npumem/job-12.1.sock\n");
}

TEST(what_a_job_has)
{
	static const char *const none[] = {"N/A",	 "gres:gpu:1", "gres:npux:1", "gres:xnpu:1", "",
					   "gres:npu:0", ","};
	static const char *const one[] = {"gres:npu",
					  "gres/npu:1",
					  "npu:1",
					  "gres:npu:sg2260",
					  "gres:npu=1",
					  "gres:gpu:3,gres:npu:1",
					  "gres:npu:a:1,gres:gpu:3",
					  "gres:npu:2x"};
	char line[96];
	for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		snprintf(line, sizeof(line), "7 7 0 n1 %s", none[i]);
		check_list(line, 0, "n1", "");
	}
	for (unsigned i = 0; i < sizeof(one) / sizeof(one[0]); i++) {
		snprintf(line, sizeof(line), "7 7 0 n1 %s", one[i]);
		check_list(line, 0, "n1", "n1/7=/run/npumem/job-7.sock\n");
	}
	check_list("7 7 0 n1 gres:npu:a:1,gres:npu:b:1", 0, "n1",
		   "n1/7=/run/npumem/job-7.sock\nn1/7.1=/run/npumem/job-7.1.sock\n");
}

TEST(whose_it_is)
{
	check_list("7 7 5 n1 gres:npu:1", 6, "n1", "");
	check_list("7 7 5 n1 gres:npu:1", 5, "n1", "n1/7=/run/npumem/job-7.sock\n");
	check_list("7 7 5 n1 gres:npu:1", 0, "n1", "n1/7=/run/npumem/job-7.sock\n");
}

TEST(lists_of_nodes)
{
	static const struct {
		const char *nodes, *names;
	} rows[] = {
		{"a,b", "a b "},
		{"n[1-3]", "n1 n2 n3 "},
		{"n[1,4-5],m", "n1 n4 n5 m "},
		{"n[08-11]", "n08 n09 n10 n11 "},
		{"r[1-2]c[3,5]", "r1c3 r1c5 r2c3 r2c5 "},
		{"n[1-2]x,n[7]", "n1x n2x n7 "},
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char line[96], names[96] = "", *rest;
		snprintf(line, sizeof(line), "7 7 0 %s gres:npu:1", rows[i].nodes);
		char *text = listed(line, 0, "", 0);
		for (char *one = strtok_r(text, "\n", &rest); one; one = strtok_r(NULL, "\n", &rest)) {
			one[strcspn(one, "/")] = ' ';
			strncat(names, one, strcspn(one, " ") + 1);
		}
		ck_assert_str_eq(names, rows[i].names);
		free(text);
	}
}

TEST(lines_that_are_none)
{
	static const char *const bad[] = {
		"",
		"7",
		"7 7 0",
		"7 7 0 n1",
		"x 7 0 n1 gres:npu:1",
		"slurm_load_jobs error: no",
		"7 7 0 n[1 gres:npu:1",
		"7 7 0 n[] gres:npu:1",
		"7 7 0 n[1-] gres:npu:1",
		"7 7 0 n[2-1] gres:npu:1",
		"7 7 0 n[1-99999] gres:npu:1",
		"7 7 0 n[1-9999999999999] gres:npu:1",
		"7 7 0 n[1,] gres:npu:1",
		"7 7 0 n[a] gres:npu:1",
		"7 7 0 -oProxyCommand=x gres:npu:1",
		"7 7 0 a:b gres:npu:1",
		"7 7 0 a/b gres:npu:1",
		"7 7 0 n1,n1 gres:npu:1",

		"7 7 0 n[1-100][1-100] gres:npu:1",
		"7 7 0 n]1[ gres:npu:1",
	};
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		free(listed(bad[i], 0, "n1", NPUMEM_INVALID));
	char line[700];
	memset(line, 'n', sizeof(line));
	memcpy(line, "7 7 0 ", 6);
	snprintf(line + 600, sizeof(line) - 600, " gres:npu:1");
	free(listed(line, 0, "", NPUMEM_INVALID));
}
