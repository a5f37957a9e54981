/* submit: a network's operations from JSON, in order, in as few messages as they fit. */
#include "client/ctl/command.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "client/ctl/core/network/network.h"
#include "client/ctl/core/output/output.h"
#include "client/ctl/network/networks.h"

static const struct option submit_options[] = {
	{"--out", "DIR",
	 "where what is read is written, below it only; made if it is missing (the current folder)", false},
	{"--samples", "FILE",
	 "runs it once for each sample in an .npy of real numbers, instead of on its input's file (several "
	 "inputs: "
	 "TENSOR=FILE,…, or an .npz with an array for each); the files that it writes have the samples along "
	 "their first axis",
	 false},
	{"--dry-run", NULL, "says what is wrong with it and what it takes; runs nothing", false},
	{"--cost", "RATES", "with --dry-run: also cycles, by the rates that you declare, as plan has them", false},
	{NULL, NULL, NULL, false},
};

/* What a row is about; allocations and the like have none. */
static bool is_told(const struct network_operation *operation)
{
	return operation->kind >= NETWORK_WRITE && operation->kind != NETWORK_EXPECT;
}

static const char *what(const struct network *network, const struct network_operation *operation, char *text)
{
	char plain[NETWORK_TEXT_BYTES];
	network_what(network, operation, plain);
	snprintf(text, NETWORK_TEXT_BYTES, "%.80s%s%.63s", plain,
		 operation->name && !operation->is_implied ? " " : "",
		 operation->name && !operation->is_implied ? operation->name : "");
	return text;
}

/* ---- text ---- */

static void print_remarks(const struct execute *execute, size_t i)
{
	const struct execute_result *result = &execute->results[i];
	char where[NETWORK_TEXT_BYTES];
	network_where(execute->network, &execute->network->operations[i], where);
	if (result->quantized)
		printf("%s: %" PRId64 " number%s saturated in the quantization\n", where, result->quantized,
		       present_s((uint64_t)result->quantized));
	if (result->wrapped)
		printf("%s: %" PRId64 " accumulator%s wrapped\n", where, result->wrapped,
		       present_s((uint64_t)result->wrapped));
	if (result->divided_by_zero)
		printf("%s: %" PRId64 " division%s by zero\n", where, result->divided_by_zero,
		       present_s((uint64_t)result->divided_by_zero));
	if (result->destroyed)
		printf("%s: %" PRId64 " byte%s of other tensors destroyed\n", where, result->destroyed,
		       present_s((uint64_t)result->destroyed));
}

static void print_row(struct table *table, const char *number, const char *text, uint64_t ns, int64_t saturated)
{
	table_cell(table, "%4s", number);
	table_cell(table, "%s", text);
	table_cell(table, "%.3f", (double)ns / 1e6);
	table_cell(table, "%" PRId64, saturated);
}

static int print_text(const struct execute *execute)
{
	const struct network *network = execute->network;
	struct table table;
	int64_t saturated = 0;
	uint64_t ns = 0;
	if (!network->n_operations) {
		printf("no operations\n");
		return CTL_OK;
	}
	table_init(&table, ">|operation|>host ms|>saturated");
	table.within = terminal_columns(STDOUT_FILENO);
	table.cut = 1;
	for (size_t i = 0; i < network->n_operations; i++) {
		const struct execute_result *result = &execute->results[i];
		char text[NETWORK_TEXT_BYTES], number[24];
		if (!is_told(&network->operations[i]))
			continue;
		ns += result->ns;
		saturated += result->saturated;
		print_row(&table, network_number(&network->operations[i], number),
			  what(network, &network->operations[i], text), result->ns, result->saturated);
	}
	print_row(&table, "", "all", ns, saturated);
	table_print(&table, stdout);
	for (size_t i = 0; i < network->n_operations; i++)
		print_remarks(execute, i);
	return CTL_OK;
}

/* ---- JSON ---- */

static json_t *operation_object(const struct execute *execute, size_t i)
{
	const struct network_operation *operation = &execute->network->operations[i];
	const struct execute_result *result = &execute->results[i];
	char number[24], text[NETWORK_TEXT_BYTES];
	network_number(operation, number);
	network_what(execute->network, operation, text);
	return json_pack("{s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "operation", number, "what", text,
			 "name", jsons_text(operation->name), "ns", (json_int_t)result->ns, "saturated",
			 (json_int_t)result->saturated, "wrapped", (json_int_t)result->wrapped, "divided_by_zero",
			 (json_int_t)result->divided_by_zero, "macs", (json_int_t)result->macs, "destroyed_bytes",
			 (json_int_t)result->destroyed, "quantized", (json_int_t)result->quantized);
}

static json_t *object(const struct execute *execute)
{
	json_t *list = json_array();
	for (size_t i = 0; i < execute->network->n_operations; i++)
		if (is_told(&execute->network->operations[i]))
			jsons_append(&list, operation_object(execute, i));
	return json_pack("{s:o}", "operations", list);
}

/* ---- running ---- */

/* Behind what the daemon said of the tensor that found no room. */
static void say_what_it_needs(struct npumem_error *error)
{
	size_t length = strlen(error->message);
	snprintf(error->message + length, sizeof(error->message) - length,
		 "; npumemctl plan tells what the network needs, npumemd --npu-bytes gives more");
}

static int run(struct ctl *ctl, const struct network *network, const char *out, const char *samples)
{
	struct execute execute;
	struct outputs outputs;
	int code = execute_init(&execute, ctl, network);
	if (code)
		return code;
	if (outputs_open(&outputs, out, network, true, &ctl->error)) {
		execute_deinit(&execute);
		return CTL_FAILED;
	}
	execute.outputs = &outputs;
	code = samples ? samples_run(&execute, samples, 0) : execute_run(&execute);
	if (code && npumem_error_find(&ctl->error, "largest_free_bytes", -1) >= 0)
		say_what_it_needs(&ctl->error);
	else if (code && npumem_error_find(&ctl->error, "bytes_per_npu", -1) >= 0)
		lifetimes_say_room(ctl, network, &execute.info->geometry);
	if (!code && ctl->json)
		code = ctl_print(ctl, object(&execute));
	else if (!code)
		code = print_text(&execute);
	outputs_close(&outputs);
	execute_deinit(&execute);
	return code;
}

static int check(struct ctl *ctl, const struct network *network, const struct rates *rates, const char *out)
{
	const struct npumem_info *info;
	struct outputs outputs;
	struct dry dry;
	if (outputs_open(&outputs, out, network, false, &ctl->error))
		return CTL_FAILED;
	outputs_close(&outputs);
	if (files_check(network, &ctl->error) || npumem_info(ctl->npumem, &info, &ctl->error))
		return CTL_FAILED;
	dry_run(ctl, network, &dry);
	return lifetimes_print(ctl, network, &info->geometry, rates, NULL, &dry);
}

static int submit_run(struct ctl *ctl, const struct args *args)
{
	const char *out = args_has(args, "--out") ? args_value(args, "--out") : ".";
	const char *cost = args_value(args, "--cost");
	bool dry = args_has(args, "--dry-run");
	struct network network;
	struct rates rates;
	if (cost && !dry)
		return ctl_usage(ctl, "--cost is for --dry-run: a run has the host's time, not cycles");
	if (cost && rates_parse(cost, &rates, &ctl->error))
		return CTL_USAGE;
	if (network_load(args->words[0], &network, &ctl->error))
		return CTL_FAILED;
	if (!dry)
		lifetimes_spawn(ctl, &network);
	int code = ctl_connect(ctl);
	if (code)
		return code;
	return dry ? check(ctl, &network, cost ? &rates : NULL, out)
		   : run(ctl, &network, out, args_value(args, "--samples"));
}

const struct command submit_command = {
	.options = submit_options,
	.least = 1,
	.most = 1,
	.run = submit_run,
	.notes =
		"FILE has operations as JSON, one a line or a list; - is stdin:\n"
		"  {\"alloc\": \"x\", \"shape\": [1,8,16,16], \"dtype\": \"fx8\", \"frac_bits\": 4, \"fill\": "
		"20}\n"
		"  {\"alloc\": \"y\", \"shape\": [1,8,8,8], \"dtype\": \"fx8\", \"frac_bits\": 4}\n"
		"  {\"run\": \"maxpool\", \"in\": \"x\", \"out\": \"y\", \"kernel\": [2,2], \"stride\": [2,2]}\n"
		"  {\"read\": \"y\", \"file\": \"y.npy\"}\n"
		"and these:\n"
		"  {\"write\": T, \"file\": F}          of alloc too: \"file\"; \"quantize\": true takes floats,\n"
		"                                   \"perm\": [1,0,2,3] a file that lies O,I,H,W\n"
		"  {\"read\": T, \"file\": F}           \"dequantize\": true gives floats\n"
		"  {\"fill\": T, \"value\": N}  {\"copy\": T, \"from\": T}  {\"free\": [T, …]}  {\"seal\": T}\n"
		"  {\"view\": T, \"of\": T, \"from\": [n,c,h,w], \"to\": [n,c,h,w]}   or \"shape\": [n,c,h,w]\n"
		"  {\"open\": T}                      a tensor of the device, by its name\n"
		"  {\"parallel\": [{\"run\": …}, {\"write\": …}, …]}   at once, DMA beside kernels\n"
		"Names are of this network; \"keep\": true of an alloc leaves the tensor on the device under\n"
		"its name; all others are freed at the end. The other form is an object, as check and plan take "
		"it:\n"
		"  {\"tensors\": {T: {\"shape\": …, \"dtype\": …, \"file\": F}, …}, \"operations\": […]}\n"
		"whose tensors are allocated before their first use and freed after their last. Files are\n"
		"found beside FILE. See npumemctl(1), NETWORKS.",
};
