/* conform: golden vectors against the device, each in every way to place its tensors; or a run made into one. */
#include "client/ctl/command.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/ctl/core/arrays/vectors.h"
#include "client/ctl/recorder.h"
#include "client/ctl/trial.h"
#include "client/ctl/variants.h"

enum { CONFORM_DEPTH_MAX = 16 };

static const struct option conform_options[] = {
	VARIANTS_OPTIONS,
	{"--only-known", NULL, "skips cases of kernels that this version does not have", false},
	{"--record", "DIR", "runs KERNEL as run does and adds what came of it to DIR/KERNEL.json", false},
	{NULL, NULL, NULL, false},
};

struct conform {
	struct ctl *ctl;
	struct npumem_geometry geometry;
	struct variants variants;
	bool only_known;
	json_t *cases; /* with --json: those that failed or were skipped */
	unsigned passed, failed, skipped;
	uint64_t runs; /* cases in placements */
	bool over;     /* the connection is */
};

/* ---- what came of it ---- */

static int tell(struct conform *conform, const char *outcome, const char *name, const char *where, const char *why)
{
	if (!conform->ctl->json) {
		printf("%s %s%s%s: %s\n", outcome, name, *where ? " " : "", where, why);
		return CTL_OK;
	}
	json_t *one = json_pack("{s:s, s:s, s:s, s:s}", "outcome", outcome, "case", name, "placed", where,
				"reason", why);
	return json_array_append_new(conform->cases, one) ? ctl_fail(conform->ctl, "no memory for the result")
							  : CTL_OK;
}

static int run_variants(struct conform *conform, const struct vectors_case *one,
			const struct npumem_kernel_row *row)
{
	struct npumem_error first = {.status = 0}, error;
	const struct variant *where = NULL;
	unsigned n_bad = 0;
	char placed[96], why[NPUMEM_MESSAGE_BYTES + 64];
	for (unsigned i = 0; i < conform->variants.n && !conform->over; i++) {
		int status = trial_run(conform->ctl->npumem, &conform->geometry, one, row,
				       &conform->variants.list[i], &error);
		conform->runs++;
		conform->over = status == NPUMEM_UNAVAILABLE;
		if (!status)
			continue;
		if (!n_bad++) {
			first = error;
			where = &conform->variants.list[i];
		}
	}
	if (!n_bad) {
		conform->passed++;
		return CTL_OK;
	}
	conform->failed++;
	snprintf(why, sizeof(why), "%s", first.message);
	if (n_bad > 1)
		snprintf(why, sizeof(why), "%s (and in %u other placements)", first.message, n_bad - 1);
	return tell(conform, "FAIL", one->name, variant_text(where, placed, sizeof(placed)), why);
}

static int run_case(struct conform *conform, const char *path, const json_t *json)
{
	struct npumem_error error = {.status = 0};
	struct vectors_case *one = malloc(sizeof(*one));
	const char *name = json_string_value(json_object_get(json, "name"));
	char why[96];
	int code;
	if (!one)
		return ctl_fail(conform->ctl, "no memory for a case");
	if (vectors_case(json, one, &error)) {
		conform->failed++;
		code = tell(conform, "FAIL", name ? name : path, "", error.message);
		free(one);
		return code;
	}
	const struct npumem_kernel_row *row = npumem_kernel_by_name(one->kernel);
	if (row) {
		code = run_variants(conform, one, row);
	} else {
		snprintf(why, sizeof(why), "there is no kernel \"%.60s\"", one->kernel);
		*(conform->only_known ? &conform->skipped : &conform->failed) += 1;
		code = tell(conform, conform->only_known ? "SKIP" : "FAIL", one->name, "", why);
	}
	vectors_case_deinit(one);
	free(one);
	return code;
}

/* ---- files ---- */

static int run_file(struct conform *conform, const char *path)
{
	struct npumem_error error = {.status = 0};
	const json_t *cases;
	json_t *root;
	int code = CTL_OK;
	if (vectors_load(path, &root, &cases, &error)) {
		conform->failed++;
		return tell(conform, "FAIL", path, "", error.message);
	}
	if (!cases && !conform->ctl->json)
		printf("no cases in %s\n", path);
	for (size_t i = 0; i < json_array_size(cases) && !code && !conform->over; i++)
		code = run_case(conform, path, json_array_get(cases, i));
	json_decref(root);
	return code;
}

static int is_vectors(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);
	return entry->d_name[0] != '.' &&
	       (!strchr(entry->d_name, '.') || (length > 5 && !strcmp(entry->d_name + length - 5, ".json")));
}

static int run_path(struct conform *conform, const char *path, unsigned depth);

static int run_directory(struct conform *conform, const char *path, unsigned depth)
{
	struct dirent **entries;
	int code = CTL_OK, n = scandir(path, &entries, is_vectors, alphasort);
	if (n < 0)
		return ctl_fail(conform->ctl, "%.200s: %s", path, strerror(errno));
	for (int i = 0; i < n; i++) {
		char inside[4096];
		struct stat status;
		int length = snprintf(inside, sizeof(inside), "%s/%s", path, entries[i]->d_name);
		bool json = strchr(entries[i]->d_name, '.');
		if (!code && length > 0 && (size_t)length < sizeof(inside) && !conform->over &&
		    (json || (!stat(inside, &status) && S_ISDIR(status.st_mode))))
			code = run_path(conform, inside, depth + 1);
		free(entries[i]);
	}
	free(entries);
	return code;
}

static int run_path(struct conform *conform, const char *path, unsigned depth)
{
	struct stat status;
	if (stat(path, &status))
		return ctl_fail(conform->ctl, "%.200s: %s", path, strerror(errno));
	if (!S_ISDIR(status.st_mode))
		return run_file(conform, path);
	if (depth > CONFORM_DEPTH_MAX)
		return ctl_fail(conform->ctl, "%.200s: more than %d folders deep", path, CONFORM_DEPTH_MAX);
	return run_directory(conform, path, depth);
}

static int report(struct conform *conform)
{
	struct ctl *ctl = conform->ctl;
	unsigned all = conform->passed + conform->failed + conform->skipped;
	if (conform->over)
		return ctl_fail(ctl, "the daemon is gone after %u cases", all);
	if (!all)
		return ctl_invalid(ctl, "there are no cases to run");
	int code = CTL_OK;
	if (ctl->json) {
		code = ctl_print(ctl, json_pack("{s:I, s:I, s:I, s:I, s:I, s:O}", "passed",
						(json_int_t)conform->passed, "failed", (json_int_t)conform->failed,
						"skipped", (json_int_t)conform->skipped, "placements",
						(json_int_t)conform->variants.n, "runs", (json_int_t)conform->runs,
						"cases", conform->cases));
	} else {
		if (conform->variants.n > 1)
			printf("%" PRIu64 " runs, each case in %u placements\n", conform->runs,
			       conform->variants.n);
		printf("%u passed, %u failed", conform->passed, conform->failed);
		if (conform->skipped)
			printf(", %u skipped", conform->skipped);
		putchar('\n');
	}
	if (!code && conform->failed)
		return ctl_fail(ctl, "%u of %u cases failed", conform->failed, all);
	return code;
}

static int conform_record(struct ctl *ctl, const struct args *args)
{
	for (const struct option *option = conform_options; option->name; option++)
		if (strcmp(option->name, "--record") && args_has(args, option->name))
			return ctl_usage(ctl, "%s has no meaning with --record", option->name);
	return recorder_run(ctl, args_value(args, "--record"), args);
}

static int conform_run(struct ctl *ctl, const struct args *args)
{
	if (args_has(args, "--record"))
		return conform_record(ctl, args);
	struct conform *conform = calloc(1, sizeof(*conform));
	const struct npumem_info *info;
	if (!conform)
		return ctl_fail(ctl, "no memory");
	conform->ctl = ctl;
	conform->only_known = args_has(args, "--only-known");
	conform->cases = ctl->json ? json_array() : NULL;
	int code = variants_parse(ctl, args, &conform->variants);
	if (!code)
		code = ctl_connect(ctl);
	if (!code && npumem_info(ctl->npumem, &info, &ctl->error))
		code = CTL_FAILED;
	if (!code) {
		conform->geometry = info->geometry;
		code = variants_check(ctl, &conform->variants, &conform->geometry);
	}
	for (unsigned i = 0; i < args->n_words && !code && !conform->over; i++)
		code = run_path(conform, args->words[i], 0);
	if (!code)
		code = report(conform);
	json_decref(conform->cases);
	free(conform);
	return code;
}

const struct command conform_command = {
	.options = conform_options,
	.least = 1,
	.most = COMMAND_WORDS_ANY,
	.run = conform_run,
	.notes = "PATH is a file of golden vectors, or a folder that is searched for *.json. Every case runs in "
		 "every\n"
		 "combination of layout, start NPU and mode; a tensor that cannot take one stays aligned, or "
		 "plain.\n"
		 "  npumemctl conform --record DIR conv2d in=x weights=w bias=b out=y stride=1,2\n"
		 "records a run on one's own tensors as such a case; the file is made where DIR has none.",
};
