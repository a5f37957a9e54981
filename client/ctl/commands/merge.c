/* merge: the reports of a sweep's shards as one. What is missing is said, and is a failure; what a later run of
 * the same shard has replaced counts no more. */
#include "client/ctl/command.h"

#include <stdio.h>
#include <string.h>

#include "client/ctl/core/output/output.h"
#include "client/ctl/core/sweep/sweep.h"

enum { MERGE_LIST_BYTES = 160 };

static const struct option merge_options[] = {
	{"--junit", "OUT.xml", "adds up the JUnit files among the words, too, or them alone", false},
	{NULL, NULL, NULL, false},
};

struct merging {
	struct ctl *ctl;
	struct parts reports, suites;
	json_t *left_out; /* what was not finished, and why */
};

/* ---- reading ---- */

static bool is_xml(const char *path)
{
	FILE *file = fopen(path, "r");
	size_t length = strlen(path);
	int first = file ? getc(file) : EOF;
	if (file)
		fclose(file);
	return first == '<' || (first == EOF && length > 4 && !strcmp(path + length - 4, ".xml"));
}

static int read_one(struct merging *merging, const char *path, bool wants_xml)
{
	const char *why_not = NULL;
	bool xml = is_xml(path);
	if (xml && !wants_xml)
		return ctl_usage(merging->ctl, "%.200s is a JUnit file: say where to with --junit OUT.xml", path);
	int status = xml ? junit_parts_read(&merging->suites, path, &why_not, &merging->ctl->error)
			 : merge_read(&merging->reports, path, &why_not, &merging->ctl->error);
	if (status)
		return CTL_FAILED;
	if (why_not)
		jsons_append(&merging->left_out, json_pack("{s:s, s:s}", "file", path, "reason", why_not));
	return CTL_OK;
}

static int read_all(struct merging *merging, const struct args *args)
{
	const struct parts *reports = &merging->reports, *suites = &merging->suites;
	bool wants_xml = args_has(args, "--junit");
	int code = CTL_OK;
	for (unsigned i = 0; i < args->n_words && !code; i++)
		code = read_one(merging, args->words[i], wants_xml);
	if (code)
		return code;
	if (!reports->n && !suites->n)
		return ctl_invalid(merging->ctl, "%.200s: no finished report%s", args->words[0],
				   args->n_words > 1 ? ", nor in the other files" : "");
	if (wants_xml && !suites->n)
		return ctl_invalid(merging->ctl, "none of the files is a finished JUnit file");
	if (reports->n && suites->n && strcmp(reports->list->of.id, suites->list->of.id))
		return ctl_invalid(merging->ctl, "%.200s is of another sweep than %.200s", suites->list->path,
				   reports->list->path);
	return CTL_OK;
}

/* ---- what is said ---- */

static void tell_replaced(const struct parts *parts)
{
	for (size_t i = 0; i < parts->n; i++)
		if (parts->list[i].by != PARTS_NONE)
			printf("shard %u: %s replaces %s\n", parts->list[i].of.shard,
			       parts->list[parts->list[i].by].path, parts->list[i].path);
}

static void tell_failures(const json_t *sum)
{
	static const char *const names[] = {"case", "network", "record", "name", "operation", "tensor", "placed"};
	const json_t *one;
	size_t i;
	json_array_foreach(json_object_get(sum, "cases"), i, one)
	{
		const char *outcome = json_string_value(json_object_get(one, "outcome"));
		const char *why = json_string_value(json_object_get(one, outcome ? "reason" : "what"));
		bool good = outcome ? !strcmp(outcome, "passed")
				    : !json_integer_value(json_object_get(one, "differences"));
		if (good)
			continue;
		fputs(outcome && !strcmp(outcome, "SKIP") ? "SKIP" : "FAIL", stdout);
		for (unsigned k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
			const char *text = json_string_value(json_object_get(one, names[k]));
			if (!text || !*text)
				continue;
			putchar(' ');
			terminal_put(stdout, text);
		}
		fputs(": ", stdout);
		terminal_put(stdout, why ? why : "");
		putchar('\n');
	}
}

static void tell_counts(const json_t *sum)
{
	static const char *const names[] = {"passed", "failed", "skipped", "requests", "differences"};
	const char *comma = "";
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const json_t *count = json_object_get(sum, names[i]);
		if (!count || (!strcmp(names[i], "skipped") && !json_integer_value(count)))
			continue;
		printf("%s%" JSON_INTEGER_FORMAT " %s", comma, json_integer_value(count), names[i]);
		comma = ", ";
	}
	putchar('\n');
}

static void print_text(const struct merging *merging, const json_t *sum)
{
	const json_t *one;
	size_t i;
	json_array_foreach(merging->left_out, i, one)
		printf("left out: %s: %s\n", json_string_value(json_object_get(one, "file")),
		       json_string_value(json_object_get(one, "reason")));
	tell_replaced(&merging->reports);
	tell_replaced(&merging->suites);
	if (sum) {
		tell_failures(sum);
		tell_counts(sum);
	}
}

/* What became of the files. */
static json_t *replaced_json(const struct parts *parts)
{
	json_t *list = json_array();
	for (size_t i = 0; i < parts->n; i++)
		if (parts->list[i].by != PARTS_NONE)
			jsons_append(&list, json_pack("{s:s, s:s, s:I}", "file", parts->list[i].path, "by",
						      parts->list[parts->list[i].by].path, "shard",
						      (json_int_t)parts->list[i].of.shard));
	return list;
}

static int print_json(const struct merging *merging, json_t *sum)
{
	const struct parts *parts = merging->reports.n ? &merging->reports : &merging->suites;
	json_t *object = sum ? json_incref(sum) : json_pack("{s:o}", "missing", parts_missing(parts));
	jsons_put(&object, "replaced", replaced_json(parts));
	jsons_put(&object, "left_out", json_incref(merging->left_out));
	return ctl_print(merging->ctl, object);
}

/* CTL_FAILED where a shard is missing. */
static int check_missing(struct ctl *ctl, const struct parts *parts, const char *what)
{
	char list[MERGE_LIST_BYTES] = "";
	json_t *missing = parts_missing(parts), *one;
	size_t n = json_array_size(missing), i, at = 0;
	json_array_foreach(missing, i, one) if (at + 24 < sizeof(list)) at += (size_t)snprintf(
		list + at, sizeof(list) - at, "%s%" JSON_INTEGER_FORMAT, i ? ", " : "", json_integer_value(one));
	else if (strcmp(list + at - 3, "...")) at += (size_t)snprintf(list + at, sizeof(list) - at, ", ...");
	if (!n)
		return CTL_OK;
	return ctl_fail(ctl, "shard%s %s of %u %s no %s", n > 1 ? "s" : "", list, parts->list->of.n_shards,
			n > 1 ? "have" : "has", what);
}

/* ---- adding up ---- */

static int sum_failed(struct ctl *ctl, const json_t *sum)
{
	json_int_t failed = json_integer_value(json_object_get(sum, "failed")),
		   differences = json_integer_value(json_object_get(sum, "differences"));
	if (failed)
		return ctl_fail(ctl, "%" JSON_INTEGER_FORMAT " failed", failed);
	return differences ? ctl_fail(ctl, "%" JSON_INTEGER_FORMAT " differences", differences) : CTL_OK;
}

static int merge_all(struct merging *merging, const struct args *args)
{
	struct ctl *ctl = merging->ctl;
	json_t *sum = NULL;
	int code = ctl_check_output(ctl, args, args_value(args, "--junit"));
	if (!code)
		code = read_all(merging, args);
	if (code)
		return code;
	if (merging->reports.n && !(sum = merge_sum(&merging->reports, &ctl->error)))
		return CTL_FAILED;
	if (merging->suites.n && junit_parts_write(&merging->suites, args_value(args, "--junit"), &ctl->error))
		code = CTL_FAILED;
	if (!code && ctl->json)
		code = print_json(merging, sum);
	else if (!code)
		print_text(merging, sum);
	if (!code && merging->reports.n)
		code = check_missing(ctl, &merging->reports, "report");
	if (!code && merging->suites.n)
		code = check_missing(ctl, &merging->suites, "JUnit file");
	return code ? code : sum_failed(ctl, sum);
}

static int merge_run(struct ctl *ctl, const struct args *args)
{
	struct merging merging = {.ctl = ctl, .left_out = json_array()};
	return merge_all(&merging, args);
}

const struct command merge_command = {
	.options = merge_options,
	.least = 1,
	.most = COMMAND_WORDS_ANY,
	.run = merge_run,
	.notes = "  npumemctl conform vectors --shard 2/4 --json > 2.json\n"
		 "  npumemctl --json merge 1.json 2.json 3.json 4.json > all.json\n"
		 "Adds up the --json reports of conform, check and replay with --shard: the result is the report "
		 "of one\n"
		 "run of all shares. If a shard has two reports, the later one counts. A shard without a report "
		 "is a\n"
		 "failure, as is a case that failed. Reports of other cases, options, devices or shares are "
		 "refused.\n"
		 "merge leaves out a report that is not whole, as its run was killed or failed, and names it.",
};
