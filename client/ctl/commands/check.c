/* check: a network's layers against what they are expected to give, in several placements. */
#include "client/ctl/command.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/ctl/core/network/files.h"
#include "client/ctl/core/network/junit.h"
#include "client/ctl/core/numbers.h"
#include "client/ctl/network/layers.h"

static const struct option check_options[] = {
	VARIANTS_OPTIONS,
	{"--junit", "FILE", "writes the outcomes as JUnit XML, too", false},
	{"--svg", "DIR", "draws the placement of each tensor that differs into DIR", false},
	{"--min-snr", "DB", "a layer passes with this signal-to-noise ratio, or more", false},
	{NULL, NULL, NULL, false},
};

/* What a layer is called: its name, or its operation, and the tensor. */
static const char *layer(const struct network *network, const struct layers_case *one, char *text)
{
	const struct network_operation *operation = &network->operations[one->operation];
	char number[24];
	const char *tensor = operation->tensor == NETWORK_NONE ? "" : network->tensors[operation->tensor].name;
	if (operation->name && !strcmp(operation->name, tensor))
		snprintf(text, NETWORK_TEXT_BYTES, "%.63s", tensor);
	else if (operation->name)
		snprintf(text, NETWORK_TEXT_BYTES, "%.63s %.63s", operation->name, tensor);
	else
		snprintf(text, NETWORK_TEXT_BYTES, "%s %.63s", network_number(operation, number), tensor);
	return text;
}

/* ---- reports ---- */

static int by_operation(const void *a, const void *b)
{
	const struct layers_case *one = *(const struct layers_case *const *)a,
				 *other = *(const struct layers_case *const *)b;
	if (one->operation != other->operation)
		return one->operation < other->operation ? -1 : 1;
	return one < other ? -1 : one > other;
}

/* Failures of one comparison for one reason are one line. */
static void print_failures(const struct network *network, struct layers_case *const *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct layers_case *one = cases[i];
		char text[NETWORK_TEXT_BYTES];
		size_t n_more = 0;
		bool told = one->passed;
		for (size_t k = 0; k < i && !told; k++)
			told = !cases[k]->passed && !strcmp(cases[k]->reason, one->reason);
		for (size_t k = i + 1; k < n && !told; k++)
			n_more += !cases[k]->passed && !strcmp(cases[k]->reason, one->reason);
		if (told)
			continue;
		printf("FAIL %s %s: %s", layer(network, one, text), one->placed, one->reason);
		if (n_more)
			printf(" (and in %zu other placement%s)", n_more, n_more > 1 ? "s" : "");
		putchar('\n');
		if (one->picture)
			printf("     its placement: %s\n", one->picture);
	}
}

/* One comparison in all its placements. */
static void print_layer(const struct network *network, struct layers_case *const *cases, size_t n)
{
	size_t n_passed = 0;
	double snr = INFINITY;
	char text[NETWORK_TEXT_BYTES];
	for (size_t i = 0; i < n; i++) {
		n_passed += cases[i]->passed;
		if (cases[i]->compared)
			snr = fmin(snr, compare_snr(&cases[i]->compare));
	}
	if (n_passed < n) {
		print_failures(network, cases, n);
		return;
	}
	printf("ok   %s", layer(network, cases[0], text));
	if (isfinite(snr))
		printf(", SNR %.1f dB", snr);
	if (n > 1)
		printf(", %zu placements", n);
	putchar('\n');
}

/* In the order of the network. */
static int print_text(struct ctl *ctl, const struct network *network, const struct layers *layers)
{
	struct layers_case **sorted = malloc(layers->n * sizeof(struct layers_case *));
	if (!sorted)
		return ctl_fail(ctl, "no memory for the outcomes");
	for (size_t i = 0; i < layers->n; i++)
		sorted[i] = &layers->cases[i];
	qsort(sorted, layers->n, sizeof(struct layers_case *), by_operation);
	for (size_t i = 0, end; i < layers->n; i = end) {
		for (end = i; end < layers->n && sorted[end]->operation == sorted[i]->operation;)
			end++;
		print_layer(network, sorted + i, end - i);
	}
	free(sorted);
	printf("%zu passed, %zu failed\n", layers->n - layers->n_failed, layers->n_failed);
	return CTL_OK;
}

static json_t *number_or_null(bool there, double number)
{
	return there && isfinite(number) ? json_real(number) : json_null();
}

static json_t *case_object(const struct network *network, const struct layers_case *one)
{
	const struct network_operation *operation = &network->operations[one->operation];
	bool differs = one->compared && one->compare.n_differ;
	char number[24];
	return json_pack("{s:s, s:o, s:o, s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "operation",
			 network_number(operation, number), "name",
			 operation->name ? json_string(operation->name) : json_null(), "tensor",
			 operation->tensor == NETWORK_NONE ? json_null()
							   : json_string(network->tensors[operation->tensor].name),
			 "placed", one->placed, "outcome", one->passed ? "passed" : "failed", "elements",
			 (json_int_t)one->compare.n, "differ", (json_int_t)one->compare.n_differ, "first",
			 differs ? json_integer((json_int_t)one->compare.first) : json_null(), "is",
			 number_or_null(differs, one->compare.is), "expected",
			 number_or_null(differs, one->compare.expected), "largest",
			 number_or_null(differs, one->compare.largest), "snr_db",
			 number_or_null(differs, compare_snr(&one->compare)), "reason",
			 one->reason ? json_string(one->reason) : json_null(), "picture",
			 one->picture ? json_string(one->picture) : json_null());
}

static int print_json(struct ctl *ctl, const struct network *network, const struct layers *layers, unsigned n)
{
	json_t *list = json_array();
	for (size_t i = 0; i < layers->n && list; i++)
		if (json_array_append_new(list, case_object(network, &layers->cases[i]))) {
			json_decref(list);
			list = NULL;
		}
	return ctl_print(ctl, json_pack("{s:I, s:I, s:I, s:o}", "passed",
					(json_int_t)(layers->n - layers->n_failed), "failed",
					(json_int_t)layers->n_failed, "placements", (json_int_t)n, "cases", list));
}

static int write_junit(struct ctl *ctl, const char *path, const char *title, const struct network *network,
		       const struct layers *layers)
{
	struct junit_case *cases = calloc(layers->n, sizeof(*cases));
	char(*names)[NETWORK_TEXT_BYTES] = calloc(layers->n, sizeof(*names));
	int code = CTL_OK;
	if (cases && names) {
		for (size_t i = 0; i < layers->n; i++)
			cases[i] = (struct junit_case){.suite = layers->cases[i].placed,
						       .name = layer(network, &layers->cases[i], names[i]),
						       .seconds = (double)layers->cases[i].ns / 1e9,
						       .failure = layers->cases[i].reason};
		if (junit_write(path, title, cases, layers->n, &ctl->error))
			code = CTL_FAILED;
	} else {
		code = ctl_fail(ctl, "no memory for the outcomes");
	}
	free(cases);
	free(names);
	return code;
}

/* ---- running ---- */

static int report(struct ctl *ctl, const struct args *args, const struct network *network,
		  const struct layers *layers, unsigned n)
{
	const char *junit = args_value(args, "--junit"), *path = args->words[0];
	int code = CTL_OK;
	if (!layers->n)
		return ctl_invalid(ctl, "%.200s: nothing is expected in it: no \"expect\"", path);
	if (junit)
		code = write_junit(ctl, junit, network->name ? network->name : path, network, layers);
	if (!code && ctl->json)
		code = print_json(ctl, network, layers, n);
	else if (!code)
		code = print_text(ctl, network, layers);
	if (!code && layers->n_failed)
		return ctl_fail(ctl, "%zu of %zu comparisons failed", layers->n_failed, layers->n);
	return code;
}

static int check_network(struct ctl *ctl, const struct args *args, const struct network *network,
			 const struct variants *variants)
{
	const char *snr = args_value(args, "--min-snr");
	struct layers layers = {.pictures = args_value(args, "--svg"), .least_snr = INFINITY};
	if (snr && (!numbers_real(snr, &layers.least_snr) || isnan(layers.least_snr)))
		return ctl_usage(ctl, "--min-snr \"%.40s\" is no number", snr);
	if (layers.pictures && mkdir(layers.pictures, 0777) && errno != EEXIST)
		return ctl_fail(ctl, "%.200s: %s", layers.pictures, strerror(errno));
	if (files_check(network, &ctl->error))
		return CTL_FAILED;
	int code = layers_run(&layers, ctl, network, variants);
	if (!code)
		code = report(ctl, args, network, &layers, variants ? variants->n : 1);
	layers_deinit(&layers);
	return code;
}

static int check_run(struct ctl *ctl, const struct args *args)
{
	bool placed = args_has(args, "--layouts") || args_has(args, "--start-npu") || args_has(args, "--mode");
	struct variants *variants = calloc(1, sizeof(*variants));
	const struct npumem_info *info;
	struct network network;
	if (!variants)
		return ctl_fail(ctl, "no memory");
	int code = variants_parse(ctl, args, variants);
	if (!code && network_load(args->words[0], &network, &ctl->error))
		code = CTL_FAILED;
	if (!code) {
		code = ctl_connect(ctl);
		if (!code && npumem_info(ctl->npumem, &info, &ctl->error))
			code = CTL_FAILED;
		if (!code)
			code = variants_check(ctl, variants, &info->geometry);
		if (!code)
			code = check_network(ctl, args, &network, placed ? variants : NULL);
		network_deinit(&network);
	}
	free(variants);
	return code;
}

const struct command check_command = {
	.options = check_options,
	.least = 1,
	.most = 1,
	.run = check_run,
	.notes = "NET.json is a network in the form of submit, whose tensors say what they are to hold:\n"
		 "  {\"tensors\": {\"y\": {\"shape\": …, \"dtype\": …, \"expect\": \"y.npy\"}, …}, "
		 "\"operations\": […]}\n"
		 "or an operation does: {\"expect\": \"y\", \"file\": \"y.npy\"}. Each is compared, integer by "
		 "integer,\n"
		 "after the last operation that writes it; where it differs the expected one takes its place,\n"
		 "so that every layer is judged by itself. All runs in every combination of layout, start NPU\n"
		 "and mode, or as the network says where none is given; a tensor that cannot take one stays\n"
		 "aligned, or plain; matrices and tensors with views keep their layout.",
};
