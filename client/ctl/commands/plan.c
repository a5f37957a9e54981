/* plan: where a tensor would lie. With a geometry on the command line the formulas answer; else the daemon does,
 * for its own. */
#include "client/ctl/command.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "client/ctl/core/network/planning/planning.h"
#include "client/ctl/core/output/output.h"
#include "client/ctl/core/pictures/svg.h"
#include "client/ctl/core/words/words.h"
#include "client/ctl/network/networks.h"

#define CHIPS "bm1684, bm1684x, bm1690, sg2260, sg2380"

static const struct option plan_options[] = {
	SPEC_OPTIONS,
	{"--npus", "X", "plans for X NPUs, without a daemon", false},
	{"--npu-bytes", "S", "and S bytes in each, as 524288, 512K or 512KiB", false},
	{"--chip", "NAME", "plans for a real part, without a daemon: " CHIPS, false},
	{"--svg", "FILE", "draws it: where the tensor's elements lie, or what of a network lives when", false},
	{"--cost", "RATES",
	 "of a network also cycles: macs_per_cycle=M,dma_bytes_per_cycle=D[,overhead=O], or a file of them",
	 false},
	{"--max-batch", "INPUT", "the largest N of this tensor, and of all that follows from it, that fits",
	 false},
	{"--optimize", "FILE",
	 "writes the network with layouts and places that take less of an NPU, beside the one that is read",
	 false},
	{"--by", "WHAT", "feature: that drawing has a cell for each feature (n,c)", false},
	{NULL, NULL, NULL, false},
};

/* The geometry that the command line gives; *local is false where it gives none. */
static int geometry_parse(struct ctl *ctl, const struct args *args, struct npumem_geometry *geometry, bool *local)
{
	const char *npus = args_value(args, "--npus"), *bytes = args_value(args, "--npu-bytes");
	const char *chip = args_value(args, "--chip");
	npumem_geometry_default(geometry);
	*local = npus || bytes || chip;
	if (chip && (npus || bytes))
		return ctl_usage(ctl, "--chip and --npus or --npu-bytes exclude each other");
	if (chip && !npumem_geometry_chip(chip, geometry))
		return ctl_usage(ctl, "there is no chip \"%.40s\"; there are: " CHIPS, chip);
	if (npus && numbers_count("--npus", npus, &geometry->n_npus, &ctl->error))
		return CTL_USAGE;
	if (bytes && numbers_bytes("--npu-bytes", bytes, &geometry->npu_bytes, &ctl->error))
		return CTL_USAGE;
	/* Few small NPUs need not have as many banks as the default's. */
	while (geometry->n_banks > 1 && geometry->npu_bytes % geometry->n_banks)
		geometry->n_banks /= 2;
	return npumem_geometry_check(geometry, &ctl->error) ? CTL_FAILED : CTL_OK;
}

static json_t *plan_object(const struct npumem_plan *plan)
{
	json_t *object = present_place(&plan->place), *widths = json_array();
	for (unsigned i = 0; i < plan->n_widths; i++) {
		const struct npumem_width *w = &plan->widths[i];
		json_t *one =
			json_pack("{s:I, s:I, s:I, s:I}", "w", (json_int_t)w->w, "channels",
				  (json_int_t)w->channels, "channels_per_npu", (json_int_t)w->channels_per_npu,
				  "bytes_per_npu", (json_int_t)w->bytes_per_npu);
		jsons_append(&widths, one);
	}
	json_t *more = json_pack("{s:I, s:{s:I, s:I}, s:I, s:I, s:o}", "waste", (json_int_t)plan->waste, "banks",
				 "first", (json_int_t)plan->first_bank, "last", (json_int_t)plan->last_bank,
				 "best_start_npu", (json_int_t)plan->best_start_npu, "best_start_saves",
				 (json_int_t)plan->best_start_saves, "widths", widths);
	jsons_merge(&object, more);
	return object;
}

static void plan_widths(const struct npumem_plan *plan)
{
	struct table table;
	table_init(&table, ">  W|>channels|>block rows|>bytes/NPU|");
	for (unsigned i = 0; i < plan->n_widths; i++) {
		const struct npumem_width *w = &plan->widths[i];
		table_cell(&table, "  %" PRId64, w->w);
		table_cell(&table, "%" PRId64, w->channels);
		table_cell(&table, "%" PRId64, w->channels_per_npu);
		table_cell(&table, "%" PRId64, w->bytes_per_npu);
		table_cell(&table, "%s", w->w == plan->place.w ? "this plan" : i ? "" : "the default");
	}
	table_print(&table, stdout);
}

static int plan_text(const struct npumem_plan *plan, const struct npumem_geometry *geometry)
{
	const struct npumem_place *place = &plan->place;
	char dtype[PRESENT_TEXT_BYTES], shape[PRESENT_TEXT_BYTES];
	printf("%s %s, %s, %s, on %" PRId64 " NPUs of %" PRId64 " bytes\n", present_dtype(place, dtype),
	       present_shape(place, shape), npumem_layout_name(place->layout), npumem_mode_name(place->mode),
	       geometry->n_npus, geometry->npu_bytes);
	present_lines(stdout, place, geometry);
	present_line(stdout, "banks touched", "%" PRId64 " to %" PRId64 " of %" PRId64 "%s", plan->first_bank,
		     plan->last_bank, geometry->n_banks, place->address == NPUMEM_ANY ? ", at offset 0" : "");
	if (plan->best_start_saves)
		present_line(stdout, "better start NPU", "%" PRId64 ", which saves %" PRId64 " bytes per NPU",
			     plan->best_start_npu, plan->best_start_saves);
	else
		present_line(stdout, "better start NPU", "none");
	if (!plan->n_widths)
		return CTL_OK;
	printf("\nwidths (columns per channel), least storage first\n");
	plan_widths(plan);
	return CTL_OK;
}

static int address_svg(struct ctl *ctl, const int64_t *addresses, unsigned n, const struct npumem_geometry *g,
		       const char *path)
{
	FILE *file = ctl_create(ctl, path);
	if (!file)
		return CTL_FAILED;
	svg_address_draw(file, g, addresses, n);
	return ctl_close(ctl, path, file);
}

static json_t *address_object(int64_t address, const struct npumem_geometry *g)
{
	int64_t npu = address / g->npu_bytes, offset = address % g->npu_bytes;
	return json_pack("{s:I, s:I, s:I, s:I}", "address", (json_int_t)address, "npu", (json_int_t)npu, "offset",
			 (json_int_t)offset, "start_npu", (json_int_t)npu);
}

/* One is an object, several are a list of them. */
static int address_json(struct ctl *ctl, const int64_t *addresses, unsigned n, const struct npumem_geometry *g)
{
	json_t *list = json_array();
	if (n == 1)
		return ctl_print(ctl, address_object(addresses[0], g));
	for (unsigned i = 0; i < n; i++)
		jsons_append(&list, address_object(addresses[i], g));
	return ctl_print(ctl, json_pack("{s:o}", "addresses", list));
}

/* --address alone: which NPU, and where on it. */
static int plan_addresses(struct ctl *ctl, const char *text, const struct npumem_geometry *g, const char *path)
{
	int64_t addresses[SVG_ADDRESSES_MAX];
	unsigned n;
	if (numbers_list("--address", text, addresses, SVG_ADDRESSES_MAX, &n, &ctl->error))
		return CTL_USAGE;
	for (unsigned i = 0; i < n; i++)
		if (addresses[i] / g->npu_bytes >= g->n_npus)
			return ctl_invalid(ctl,
					   "address %" PRId64 " is not below the %" PRId64 " bytes of this device",
					   addresses[i], g->n_npus * g->npu_bytes);
	if (path && address_svg(ctl, addresses, n, g, path))
		return CTL_FAILED;
	if (ctl->json)
		return address_json(ctl, addresses, n, g);
	for (unsigned i = 0; i < n; i++)
		printf("address %" PRId64 " is offset %" PRId64 " of NPU %" PRId64 "\n", addresses[i],
		       addresses[i] % g->npu_bytes, addresses[i] / g->npu_bytes);
	return CTL_OK;
}

static int plan_ask(struct ctl *ctl, const struct npumem_geometry *geometry, bool local,
		    const struct npumem_spec *spec, struct npumem_plan *own, struct npumem_error *why)
{
	const struct npumem_plan *plan;
	npumem_error_clear(why);
	int status =
		local ? npumem_plan(geometry, spec, own, why) : npumem_plan_remote(ctl->npumem, spec, &plan, why);
	if (!status && !local)
		*own = *plan;
	return status;
}

static void plan_row(struct table *table, const struct npumem_plan *plan)
{
	const struct npumem_place *p = &plan->place;
	table_cell(table, "%s", npumem_layout_name(p->layout));
	table_cell(table, "%s", npumem_mode_name(p->mode));
	table_cell(table, "%" PRId64, p->bytes_per_npu);
	table_cell(table, "%" PRId64, present_bytes(p));
	table_cell(table, "%" PRId64, plan->waste);
	table_cell(table, "%" PRId64, plan->best_start_npu);
}

/* --layout all: every layout and mode that the tensor can have, side by side. */
static int plan_all(struct ctl *ctl, const struct npumem_geometry *geometry, bool local, struct npumem_spec *spec)
{
	json_t *plans = json_array();
	struct npumem_error why, first = {.status = 0};
	struct table table;
	table_init(&table, "LAYOUT|MODE|>BYTES/NPU|>BYTES|>WASTE|>BEST START");
	table.within = terminal_columns(STDOUT_FILENO);
	table.spare = "54";
	for (spec->layout = 1; npumem_layout_name(spec->layout); spec->layout++) {
		for (spec->mode = 1; npumem_mode_name(spec->mode); spec->mode++) {
			struct npumem_plan plan;
			if (spec->layout == NPUMEM_MATRIX)
				continue;
			if (plan_ask(ctl, geometry, local, spec, &plan, &why)) {
				first = first.status ? first : why;
				continue;
			}
			json_t *one = plan_object(&plan);
			json_object_set_new(one, "layout", json_string(npumem_layout_name(spec->layout)));
			json_object_set_new(one, "mode", json_string(npumem_mode_name(spec->mode)));
			json_array_append_new(plans, one);
			plan_row(&table, &plan);
		}
	}
	if (!json_array_size(plans)) {
		ctl->error = first;
		return CTL_FAILED;
	}
	if (ctl->json)
		return ctl_print(ctl, json_pack("{s:o}", "plans", plans));
	table_print(&table, stdout);
	return CTL_OK;
}

/* Takes --layout all out of the options, whose others are then a spec's. */
static bool take_all(struct args *args)
{
	const char *layout = args_value(args, "--layout");
	unsigned n = 0;
	if (!layout || strcmp(layout, "all"))
		return false;
	for (unsigned i = 0; i < args->n_given; i++)
		if (strcmp(args->given[i].option->name, "--layout"))
			args->given[n++] = args->given[i];
	args->n_given = n;
	return true;
}

static bool address_alone(const struct args *args)
{
	static const char *const others[] = {"--shape",	 "--dtype", "--frac-bits", "--layout", "--mode",
					     "--stride", "--rows",  "--cols",	   "--w",      "--start-npu"};
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (args_has(args, others[i]))
			return false;
	return args_has(args, "--address");
}

/* The geometry of the daemon, where one answers; else of the default device, but not where a daemon is asked for.
 */
static int geometry_ask(struct ctl *ctl, struct npumem_geometry *geometry)
{
	const struct npumem_info *info;
	int code = ctl_connect(ctl);
	if (!code && npumem_info(ctl->npumem, &info, &ctl->error))
		return CTL_FAILED;
	if (!code)
		*geometry = info->geometry;
	if (!code || ctl->address)
		return code;
	npumem_error_clear(&ctl->error);
	return CTL_OK;
}

static int plan_batch(struct ctl *ctl, const struct network *network, const struct npumem_geometry *geometry,
		      const char *input)
{
	struct batches batches;
	if (batches_most(network, geometry, input, &batches, &ctl->error))
		return CTL_FAILED;
	if (!batches.most)
		return ctl_fail(ctl, "no batch of \"%.63s\" fits: plan without --max-batch has the reason", input);
	if (ctl->json)
		return ctl_print(ctl,
				 json_pack("{s:s, s:I, s:I, s:o, s:I, s:I}", "input", input, "max_batch",
					   (json_int_t)batches.most, "peak", (json_int_t)batches.peak, "next_peak",
					   jsons_integer(batches.next), "npus", (json_int_t)geometry->n_npus,
					   "npu_bytes", (json_int_t)geometry->npu_bytes));
	printf("largest batch: %" PRId64 " (N of %s), peak %" PRId64 " of %" PRId64 " bytes per NPU", batches.most,
	       input, batches.peak, geometry->npu_bytes);
	if (batches.next == NPUMEM_ANY)
		printf("; one more has a tensor that no NPU holds\n");
	else
		printf("; one more would take %" PRId64 "\n", batches.next);
	return CTL_OK;
}

/* A network's files are named from its folder. */
static bool is_beside(const struct network *network, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash + 1 - path) : 0;
	return strlen(network->folder) == length && !strncmp(network->folder, path, length);
}

static int plan_optimize(struct ctl *ctl, struct network *network, const struct npumem_geometry *geometry,
			 const char *path)
{
	struct optimized o;
	if (!is_beside(network, path))
		return ctl_usage(ctl,
				 "--optimize %.200s: it must be in the folder of the network, \"%.200s\", from "
				 "which the network names its files",
				 path, *network->folder ? network->folder : ".");
	if (optimize_network(network, geometry, &o, &ctl->error))
		return CTL_FAILED;
	const json_t *document = network->document.whole ? network->document.whole : network->document.root;
	FILE *file = ctl_create(ctl, path);
	if (!file)
		return CTL_FAILED;
	json_dumpf(document, file, JSON_INDENT(1));
	putc('\n', file);
	int code = ctl_close(ctl, path, file);
	if (code || ctl->json)
		return code;
	printf("%s: peak %" PRId64 " -> %" PRId64 " bytes per NPU", path, o.peak_before, o.peak);
	if (o.reach_before != INT64_MAX)
		printf(", highest offset %" PRId64 " -> %" PRId64, o.reach_before, o.reach);
	printf("; %zu tensor%s compact, %zu at addresses, %u order%s tried\n\n", o.n_compact,
	       present_s(o.n_compact), o.n_placed, o.n_orders, present_s(o.n_orders));
	return CTL_OK;
}

/* What is on the device of others does not count, but of a private one its options do. */
static int plan_lifetimes(struct ctl *ctl, const struct network *network, const struct npumem_geometry *geometry,
			  const struct rates *rates, const char *svg)
{
	struct dry dry;
	if (ctl->npumem && ctl->spawned)
		dry_run(ctl, network, &dry);
	else
		dry_run_alone(ctl, network, geometry, &dry);
	return lifetimes_print(ctl, network, geometry, rates, svg, &dry);
}

static int plan_network(struct ctl *ctl, const struct args *args)
{
	struct npumem_geometry geometry;
	struct network network;
	struct rates rates;
	const char *cost = args_value(args, "--cost"), *input = args_value(args, "--max-batch");
	const char *svg = args_value(args, "--svg"), *optimize = args_value(args, "--optimize");
	bool local;
	int code = geometry_parse(ctl, args, &geometry, &local);
	for (const struct option *option = plan_options; option->name && !code; option++)
		if (args_has(args, option->name) && strcmp(option->name, "--npus") &&
		    strcmp(option->name, "--npu-bytes") && strcmp(option->name, "--chip") &&
		    strcmp(option->name, "--svg") && strcmp(option->name, "--cost") &&
		    strcmp(option->name, "--max-batch") && strcmp(option->name, "--optimize"))
			code = ctl_usage(ctl, "%s is for one tensor, not for a network", option->name);
	if (!code && input && (cost || svg || optimize))
		code = ctl_usage(ctl, "--max-batch prints a number only, without --cost, --svg and --optimize");
	if (!code && (ctl_check_output(ctl, args, svg) || ctl_check_output(ctl, args, optimize)))
		code = CTL_USAGE;
	if (!code && cost && rates_parse(cost, &rates, &ctl->error))
		code = CTL_USAGE;
	if (code)
		return code;
	if (network_load(args->words[0], &network, &ctl->error))
		return CTL_FAILED;
	if (!local)
		code = geometry_ask(ctl, &geometry);
	if (!code && optimize)
		code = plan_optimize(ctl, &network, &geometry, optimize);
	if (!code && input)
		code = plan_batch(ctl, &network, &geometry, input);
	else if (!code)
		code = plan_lifetimes(ctl, &network, &geometry, cost ? &rates : NULL, svg);
	return code;
}

static int plan_svg(struct ctl *ctl, const struct npumem_plan *plan, const struct npumem_geometry *geometry,
		    const char *path, bool by_feature)
{
	const struct npumem_tensor tensor = {.place = plan->place};
	FILE *file = ctl_create(ctl, path);
	if (!file)
		return CTL_FAILED;
	if (by_feature)
		svg_tensor_features(file, geometry, &tensor, tensor.uid);
	else
		svg_tensor_draw(file, geometry, &tensor, tensor.uid, NULL);
	return ctl_close(ctl, path, file);
}

static int plan_run(struct ctl *ctl, const struct args *args)
{
	struct npumem_geometry geometry;
	struct npumem_spec spec;
	struct npumem_plan own;
	const struct npumem_info *info;
	const char *path = args_value(args, "--svg"), *by = args_value(args, "--by");
	struct args own_args = *args;
	bool local, alone = address_alone(args), all = take_all(&own_args);
	if (by && (strcmp(by, "feature") || !path || alone || args->n_words))
		return ctl_usage(ctl, "--by feature is for the drawing of one tensor: --svg FILE --by feature");
	if (args->n_words)
		return plan_network(ctl, args);
	if (args_has(args, "--optimize"))
		return ctl_usage(ctl, "--optimize is for a network: plan NET.json --optimize FILE");
	if (args_has(args, "--max-batch"))
		return ctl_usage(ctl, "--max-batch is for a network: plan NET.json --max-batch INPUT");
	if (args_has(args, "--cost"))
		return ctl_usage(ctl, "--cost is for a network: plan NET.json --cost RATES");
	if (all && path)
		return ctl_usage(ctl, "--svg draws one layout, not all");
	if (!alone && !args_value(args, "--shape") && !args_value(args, "--rows") && !args_value(args, "--dtype"))
		return ctl_usage(ctl,
				 "plan needs a tensor (--shape N,C,H,W --dtype T), addresses (--address A) or a "
				 "network (NET.json)");
	int code = geometry_parse(ctl, args, &geometry, &local);
	if (!code && !alone && spec_parse(&own_args, &spec, &ctl->error))
		code = CTL_USAGE;
	if (!code && !local) {
		code = ctl_connect(ctl);
		if (code && ctl->error.status == NPUMEM_UNAVAILABLE && !ctl->address)
			ctl_refuse(ctl, &ctl->error,
				   "%.400s; without a daemon: plan --chip NAME, or --npus X and --npu-bytes S",
				   ctl->error.message);
	}
	if (code)
		return code;
	if (!local) {
		if (npumem_info(ctl->npumem, &info, &ctl->error))
			return CTL_FAILED;
		geometry = info->geometry;
	}
	if (alone)
		return plan_addresses(ctl, args_value(args, "--address"), &geometry, path);
	if (all)
		return plan_all(ctl, &geometry, local, &spec);
	if (plan_ask(ctl, &geometry, local, &spec, &own, &ctl->error))
		return CTL_FAILED;
	if (path && plan_svg(ctl, &own, &geometry, path, args_has(args, "--by")))
		return CTL_FAILED;
	return ctl->json ? ctl_print(ctl, plan_object(&own)) : plan_text(&own, &geometry);
}

const struct command plan_command = {
	.options = plan_options,
	.most = 1,
	.run = plan_run,
	.notes = "  npumemctl plan --layout matrix --rows R --cols M [--w W]   plans a matrix\n"
		 "  npumemctl plan --layout all --shape N,C,H,W --dtype T       every layout and mode, side by "
		 "side\n"
		 "  npumemctl plan --address A[,B…]                          their NPUs and offsets\n"
		 "  npumemctl plan NET.json                                  a network, in the form of submit\n"
		 "Of a network: which tensors are allocated when, the peak, whether it fits, and what each "
		 "operation costs.\n"
		 "If no daemon runs, the network is planned for the default device.",
};
