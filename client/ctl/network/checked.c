/* Reports of a check: text, JSON and JUnit. A layer's failures that are the same are printed once, with their
 * placements.
 */
#include "client/ctl/network/networks.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/ctl/core/memory.h"
#include "client/ctl/core/output/output.h"
#include "client/ctl/core/sweep/sweep.h"

const char *checked_base(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

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

static int by_operation(const void *a, const void *b)
{
	const struct layers_case *one = *(const struct layers_case *const *)a,
				 *other = *(const struct layers_case *const *)b;
	if (one->operation != other->operation)
		return one->operation < other->operation ? -1 : 1;
	return one < other ? -1 : one > other;
}

/* Whether two failures of one comparison are the same: the same elements differ in the same way, wherever they
 * lie. */
static bool is_same_failure(const struct layers_case *a, const struct layers_case *b)
{
	const struct compare *x = &a->compare, *y = &b->compare;
	if (a->passed || b->passed || a->compared != b->compared)
		return false;
	if (!a->compared)
		return !strcmp(a->reason, b->reason);
	return x->first == y->first && x->n_differ == y->n_differ && x->is == y->is &&
	       x->expected == y->expected && x->largest == y->largest && x->noise == y->noise;
}

/* The placements of the failures that are the same as the first of `cases`. */
static void print_placements(struct layers_case *const *cases, size_t n, size_t n_all)
{
	size_t n_same = 0;
	for (size_t i = 0; i < n; i++)
		n_same += is_same_failure(cases[0], cases[i]);
	if (n_same == 1)
		return;
	if (n_same == n_all) {
		printf("     the same in all %zu placements\n", n_all);
		return;
	}
	printf("     the same in %zu of %zu placements:\n", n_same, n_all);
	for (size_t i = 0; i < n; i++)
		if (is_same_failure(cases[0], cases[i]))
			printf("       %s\n", cases[i]->placed);
}

/* Equal failures are printed once. */
static void print_failures(const struct network *network, struct layers_case *const *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct layers_case *one = cases[i];
		char text[NETWORK_TEXT_BYTES];
		bool is_told = one->passed;
		for (size_t k = 0; k < i && !is_told; k++)
			is_told = is_same_failure(cases[k], one);
		if (is_told)
			continue;
		printf("FAIL %s %s: %s\n", layer(network, one, text), one->placed, one->reason);
		print_placements(cases + i, n - i, n);
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

/* Layers without a comparison come first, then the layers by S/N, the lowest first. */
static int by_snr(const void *a, const void *b)
{
	const struct layers_case *one = *(const struct layers_case *const *)a,
				 *other = *(const struct layers_case *const *)b;
	double x = one->compared ? compare_snr(&one->compare) : -INFINITY,
	       y = other->compared ? compare_snr(&other->compare) : -INFINITY;
	return x < y ? -1 : x > y ? 1 : by_operation(a, b);
}

/* Layers against real numbers: how much is left of each, and what the kernels counted. */
static void print_reals(const struct checked *checked, struct layers_case **cases, size_t n)
{
	const struct network *network = &checked->network;
	struct table table;
	char text[NETWORK_TEXT_BYTES];
	if (checked->layers.samples)
		printf("%zu sample%s\n", checked->layers.n_samples, checked->layers.n_samples > 1 ? "s" : "");
	table_init(&table, "|>S/N dB|>saturated|>wrapped|layer");
	table.within = terminal_columns(STDOUT_FILENO);
	table.cut = 4;
	qsort(cases, n, sizeof(*cases), by_snr);
	for (size_t i = 0; i < n; i++) {
		const struct layers_case *one = cases[i];
		double snr = compare_snr(&one->compare);
		table_cell(&table, "%s", one->passed ? "ok" : "FAIL");
		if (one->compared && isfinite(snr))
			table_cell(&table, "%.1f", snr);
		else
			table_cell(&table, "%s", one->compared ? "exact" : "");
		table_cell(&table, "%" PRId64, one->saturated);
		table_cell(&table, "%" PRId64, one->wrapped);
		layer(network, one, text);
		table_cell(&table, "%s%s%.160s", text, one->compared ? "" : ": ",
			   one->compared ? "" : one->reason);
	}
	table_print(&table, stdout);
}

/* In the order of the network; of real numbers the worst first. */
static void print_network(const struct check *check, const struct checked *checked)
{
	const struct network *network = &checked->network;
	const struct layers *layers = &checked->layers;
	bool is_real = !check->is_placed;
	struct layers_case **sorted = memory_new(layers->n, sizeof(struct layers_case *));
	for (size_t i = 0; i < layers->n; i++) {
		sorted[i] = &layers->cases[i];
		is_real = is_real && (layers->cases[i].is_real || !layers->cases[i].compared);
	}
	if (is_real && layers->cases[0].compared) {
		print_reals(checked, sorted, layers->n);
		return;
	}
	qsort(sorted, layers->n, sizeof(struct layers_case *), by_operation);
	for (size_t i = 0, end; i < layers->n; i = end) {
		for (end = i; end < layers->n && sorted[end]->operation == sorted[i]->operation;)
			end++;
		print_layer(network, sorted + i, end - i);
	}
}

static int print_text(const struct check *check)
{
	sweeping_tell(&check->sweep, "placements");
	for (unsigned i = 0; i < check->n; i++) {
		const struct checked *one = &check->list[i];
		if (check->n > 1 && one->layers.n)
			printf("%s:\n", one->path);
		if (one->layers.n)
			print_network(check, one);
	}
	printf("%zu passed, %zu failed\n", check->n_cases - check->n_failed, check->n_failed);
	return CTL_OK;
}

static json_t *number_or_null(bool there, double number)
{
	return there ? jsons_real(number) : json_null();
}

static json_t *case_object(const struct checked *checked, const struct layers_case *one)
{
	const struct network *network = &checked->network;
	const struct network_operation *operation = &network->operations[one->operation];
	bool differs = one->compared && one->compare.n_differ;
	char number[24];
	return json_pack("{s:I, s:s, s:s, s:o, s:o, s:s, s:s, s:f, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:I, s:I, "
			 "s:I, s:o, s:o}",
			 "item", (json_int_t)one->item, "network", checked_base(checked->path), "operation",
			 network_number(operation, number), "name", jsons_text(operation->name), "tensor",
			 operation->tensor == NETWORK_NONE ? json_null()
							   : json_string(network->tensors[operation->tensor].name),
			 "placed", one->placed, "outcome", one->passed ? "passed" : "failed", "seconds",
			 (double)one->ns / 1e9, "elements", (json_int_t)one->compare.n, "differ",
			 (json_int_t)one->compare.n_differ, "first",
			 differs ? json_integer((json_int_t)one->compare.first) : json_null(), "is",
			 number_or_null(differs, one->compare.is), "expected",
			 number_or_null(differs, one->compare.expected), "largest",
			 number_or_null(differs, one->compare.largest), "snr_db",
			 number_or_null(one->compared, compare_snr(&one->compare)), "saturated",
			 (json_int_t)one->saturated, "wrapped", (json_int_t)one->wrapped, "samples",
			 (json_int_t)checked->layers.n_samples, "reason", jsons_text(one->reason), "picture",
			 jsons_text(one->picture));
}

static int print_json(const struct check *check, const struct sweep_part *part)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < check->n; i++)
		for (size_t k = 0; k < check->list[i].layers.n && list; k++)
			jsons_append(&list, case_object(&check->list[i], &check->list[i].layers.cases[k]));
	return sweeping_print(check->ctl, &check->sweep, part,
			      json_pack("{s:I, s:I, s:I, s:o}", "passed",
					(json_int_t)(check->n_cases - check->n_failed), "failed",
					(json_int_t)check->n_failed, "placements",
					(json_int_t)checked_placements(check), "cases", list));
}

/* The cases of one network; `names` are theirs. */
static void junit_cases(const struct checked *checked, struct junit_case *cases, char (*names)[NETWORK_TEXT_BYTES])
{
	const struct network *network = &checked->network;
	for (size_t i = 0; i < checked->layers.n; i++) {
		const struct layers_case *one = &checked->layers.cases[i];
		cases[i] = (struct junit_case){.item = one->item,
					       .title = network->name ? network->name : checked->path,
					       .suite = one->placed,
					       .name = layer(network, one, names[i]),
					       .seconds = (double)one->ns / 1e9,
					       .failure = one->reason};
	}
}

static int write_junit(const struct check *check, const char *path, const struct sweep_part *part)
{
	struct junit_case *cases = memory_new(check->n_cases, sizeof(*cases));
	char(*names)[NETWORK_TEXT_BYTES] = memory_new(check->n_cases, sizeof(*names));
	size_t n = 0;
	for (unsigned i = 0; i < check->n; n += check->list[i++].layers.n)
		junit_cases(&check->list[i], cases + n, names + n);
	return junit_write(path, part, cases, n, &check->ctl->error) ? CTL_FAILED : CTL_OK;
}

static bool is_of_reals(const struct check *check)
{
	for (unsigned i = 0; i < check->n; i++)
		for (size_t k = 0; k < check->list[i].layers.n; k++)
			if (check->list[i].layers.cases[k].is_real)
				return true;
	return false;
}

int checked_report(struct check *check, const struct args *args)
{
	const char *junit = args_value(args, "--junit");
	struct sweep_part part;
	int code = CTL_OK;
	sweep_part(&check->sweep, &part);
	for (unsigned i = 0; i < check->n; i++) {
		check->n_cases += check->list[i].layers.n;
		check->n_failed += check->list[i].layers.n_failed;
	}
	if (junit)
		code = write_junit(check, junit, &part);
	if (!code)
		code = check->ctl->json ? print_json(check, &part) : print_text(check);
	if (code || !check->n_failed)
		return code;
	return ctl_fail(check->ctl, "%zu of %zu comparisons failed%s", check->n_failed, check->n_cases,
			is_of_reals(check) && !args_has(args, "--min-snr")
				? "; real numbers are rarely equal: --min-snr DB tells what is near enough"
				: "");
}
