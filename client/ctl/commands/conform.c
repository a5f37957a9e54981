/* conform: golden vectors against the device, each in every way to place its tensors; or a run made into one. */
#include "client/ctl/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/ctl/conform/conform.h"
#include "client/ctl/core/memory.h"
#include "client/ctl/core/output/output.h"
#include "client/ctl/core/vectors/vectors.h"
#include "client/ctl/core/words/words.h"

static const struct option conform_options[] = {
	VARIANTS_OPTIONS,
	SWEEPING_OPTIONS,
	{"--only-known", NULL, "skips cases of kernels that this version does not have", false},
	{"--record", "DIR", "runs KERNEL as run does and adds what came of it to DIR/KERNEL.json", false},
	{NULL, NULL, NULL, false},
};

struct conform {
	struct ctl *ctl;
	struct npumem_geometry geometry;
	struct variants variants;
	bool only_known;
	struct sweep sweep;
	struct vector_files files;
	size_t item;   /* of the case that runs */
	json_t *cases; /* with --json: those that failed or were skipped */
	unsigned passed, failed, skipped;
	uint64_t runs; /* cases in placements */
	bool over;     /* the connection is */
};

/* ---- what came of it ---- */

static void print_outcome(struct conform *conform, const char *outcome, const char *name, const char *where,
			  const char *why)
{
	if (!conform->ctl->json) {
		printf("%s ", outcome);
		terminal_put(stdout, name);
		printf("%s%s: ", *where ? " " : "", where);
		terminal_put(stdout, why);
		putchar('\n');
		return;
	}
	jsons_append(&conform->cases, json_pack("{s:I, s:s, s:s, s:s, s:s}", "item", (json_int_t)conform->item,
						"outcome", outcome, "case", name, "placed", where, "reason", why));
}

static void run_variants(struct conform *conform, const struct vectors_case *one,
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
		return;
	}
	conform->failed++;
	snprintf(why, sizeof(why), "%s", first.message);
	if (n_bad > 1)
		snprintf(why, sizeof(why), "%s (and in %u other placement%s)", first.message, n_bad - 1,
			 present_s(n_bad - 1));
	print_outcome(conform, "FAIL", one->name, variant_text(where, placed, sizeof(placed)), why);
}

static void run_case(struct conform *conform, const char *path, const json_t *json)
{
	struct npumem_error error = {.status = 0};
	struct vectors_case *one = memory_new(1, sizeof(*one));
	const char *name = json_string_value(json_object_get(json, "name"));
	char why[96];
	const struct npumem_kernel_row *row = NULL;
	if (vectors_case(json, one, &error)) {
		conform->failed++;
		print_outcome(conform, "FAIL", name ? name : path, "", error.message);
	} else if ((row = npumem_kernel_by_name(one->kernel))) {
		run_variants(conform, one, row);
	} else {
		snprintf(why, sizeof(why), "there is no kernel \"%.60s\"", one->kernel);
		*(conform->only_known ? &conform->skipped : &conform->failed) += 1;
		print_outcome(conform, conform->only_known ? "SKIP" : "FAIL", one->name, "", why);
	}
	vectors_case_deinit(one);
	memory_free(one);
}

/* ---- files ---- */

static int run_cases(struct conform *conform, const struct vector_file *file, const json_t *cases)
{
	if (json_array_size(cases) != file->n)
		return ctl_fail(conform->ctl, "%.200s was changed while it was read", file->path);
	for (size_t i = 0; i < file->n && !conform->over; i++) {
		double since = ctl_now();
		conform->item = file->first + i;
		if (!sweep_is_ours(&conform->sweep, conform->item))
			continue;
		run_case(conform, file->path, json_array_get(cases, i));
		sweeping_ran(&conform->sweep, conform->item, since);
	}
	return CTL_OK;
}

static int run_file(struct conform *conform, const struct vector_file *file)
{
	struct npumem_error error = {.status = 0};
	const json_t *cases;
	json_t *root;
	bool ours = false;
	for (size_t i = 0; i < file->n; i++)
		ours |= sweep_is_ours(&conform->sweep, file->first + i);
	if (!ours)
		return CTL_OK;
	if (vector_files_load(file, &root, &cases, &error)) {
		conform->failed++;
		conform->item = file->first;
		sweeping_ran(&conform->sweep, conform->item, ctl_now());
		kinds_explain("conform", file->path, &error);
		print_outcome(conform, "FAIL", file->path, "", error.message);
		return CTL_OK;
	}
	int code = run_cases(conform, file, cases);
	json_decref(root);
	return code;
}

static void print_text(const struct conform *conform)
{
	sweeping_tell(&conform->sweep, "cases");
	if (conform->variants.n > 1)
		printf("%" PRIu64 " runs, each case in %u placements\n", conform->runs, conform->variants.n);
	printf("%u passed, %u failed", conform->passed, conform->failed);
	if (conform->skipped)
		printf(", %u skipped", conform->skipped);
	putchar('\n');
}

static int print_json(struct conform *conform)
{
	struct sweep_part part;
	sweep_part(&conform->sweep, &part);
	return sweeping_print(conform->ctl, &conform->sweep, &part,
			      json_pack("{s:I, s:I, s:I, s:I, s:I, s:O}", "passed", (json_int_t)conform->passed,
					"failed", (json_int_t)conform->failed, "skipped",
					(json_int_t)conform->skipped, "placements",
					(json_int_t)conform->variants.n, "runs", (json_int_t)conform->runs,
					"cases", conform->cases));
}

static int report(struct conform *conform)
{
	struct ctl *ctl = conform->ctl;
	unsigned all = conform->passed + conform->failed + conform->skipped;
	int code = CTL_OK;
	if (conform->over) {
		npumem_error_set(&ctl->error, NPUMEM_UNAVAILABLE, "the daemon is gone after %u cases", all);
		return CTL_FAILED;
	}
	if (!conform->sweep.n)
		return ctl_invalid(ctl, "there are no cases to run");
	if (ctl->json)
		code = print_json(conform);
	else
		print_text(conform);
	if (!code && conform->failed)
		return ctl_fail(ctl, "%u of %u cases failed", conform->failed, all);
	return code;
}

static int conform_record(struct ctl *ctl, const struct args *args)
{
	for (const struct option *option = conform_options; option->name; option++)
		if (strcmp(option->name, "--record") && args_has(args, option->name))
			return ctl_usage(ctl, "%s has no meaning with --record", option->name);
	return golden_run_record(ctl, args_value(args, "--record"), args);
}

/* Finds the cases, and whose they are. */
static int find_cases(struct conform *conform, const struct args *args)
{
	struct ctl *ctl = conform->ctl;
	const struct npumem_info *info;
	int code = ctl_info(ctl, &info);
	if (code)
		return code;
	conform->geometry = info->geometry;
	code = variants_check(ctl, &conform->variants, &conform->geometry);
	sweeping_mix(&conform->sweep, info, &conform->variants);
	sweep_mix(&conform->sweep, &conform->only_known, sizeof(conform->only_known));
	if (!code)
		code = vector_files_find(ctl, args->words, args->n_words, &conform->sweep, &conform->files);
	return code ? code : sweeping_share(ctl, args, &conform->sweep);
}

static int conform_run(struct ctl *ctl, const struct args *args)
{
	if (args_has(args, "--record"))
		return conform_record(ctl, args);
	struct conform *conform = memory_new(1, sizeof(*conform));
	conform->ctl = ctl;
	conform->only_known = args_has(args, "--only-known");
	conform->cases = ctl->json ? json_array() : NULL;
	int code = sweeping_begin(ctl, args, "conform", &conform->sweep);
	if (!code)
		code = variants_parse(ctl, args, &conform->variants);
	if (!code)
		code = find_cases(conform, args);
	for (size_t i = 0; i < conform->files.n && !code && !conform->over; i++)
		code = run_file(conform, &conform->files.list[i]);
	return code ? code : report(conform);
}

const struct command conform_command = {
	.options = conform_options,
	.least = 1,
	.most = COMMAND_WORDS_ANY,
	.sweeps = true,
	.run = conform_run,
	.notes = "PATH is a file of golden vectors, or a folder that is searched for *.json. Every case runs in "
		 "every\n"
		 "combination of layout, start NPU and mode; a tensor that cannot take one stays aligned, or "
		 "plain.\n"
		 "  npumemctl conform --record DIR conv2d in=x weights=w bias=b out=y stride=1,2\n"
		 "records a run on your tensors as such a case, in DIR/conv2d.json, which it makes if it is "
		 "missing.\n" SWEEPING_NOTES,
};
