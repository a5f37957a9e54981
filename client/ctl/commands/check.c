/* check: a network's layers against what they are expected to give, in several placements. */
#include "client/ctl/command.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/ctl/core/memory.h"
#include "client/ctl/core/network/network.h"
#include "client/ctl/core/words/words.h"
#include "client/ctl/network/networks.h"

static const struct option check_options[] = {
	VARIANTS_OPTIONS,
	SWEEPING_OPTIONS,
	{"--junit", "FILE", "writes the outcomes as JUnit XML, too", false},
	{"--svg", "DIR", "draws the placement of each tensor that differs into DIR", false},
	{"--samples", "FILE",
	 "compares over the samples in an .npy, instead of on the input's file (several inputs: TENSOR=FILE,…); "
	 "uses as many samples as the network has expected floats for",
	 false},
	{"--min-snr", "DB", "a layer passes with this signal-to-noise ratio, or more", false},
	{NULL, NULL, NULL, false},
};

static int options_of(struct ctl *ctl, const struct args *args, struct layers *layers)
{
	const char *snr = args_value(args, "--min-snr");
	*layers = (struct layers){.samples = args_value(args, "--samples"),
				  .pictures = args_value(args, "--svg"),
				  .least_snr = INFINITY};
	if (snr && (!numbers_real(snr, &layers->least_snr) || isnan(layers->least_snr)))
		return ctl_usage(ctl, "--min-snr \"%.40s\" is not a number", snr);
	return CTL_OK;
}

/* What is to be done, and whose it is. */
static int find_items(struct check *check, const struct args *args)
{
	struct ctl *ctl = check->ctl;
	const struct npumem_info *info;
	char placed[LAYERS_PLACED_BYTES], name[LAYERS_PLACED_BYTES + 256];
	const char *snr = args_value(args, "--min-snr");
	int code = ctl_info(ctl, &info);
	if (!code)
		code = variants_check(ctl, &check->variants, &info->geometry);
	if (code)
		return code;
	sweeping_mix(&check->sweep, info, NULL);
	if (snr)
		sweep_mix(&check->sweep, snr, strlen(snr));
	for (unsigned i = 0; i < check->n; i++) {
		for (unsigned k = 0; k < checked_placements(check); k++) {
			snprintf(name, sizeof(name), "%.200s %s", checked_base(check->list[i].path),
				 check->is_placed ? variant_text(&check->variants.list[k], placed, sizeof(placed))
						  : "[as written]");
			sweep_add(&check->sweep, name);
		}
	}
	return sweeping_share(ctl, args, &check->sweep);
}

/* Our placements of a network, the first of which is item `first`. */
static int check_network(struct check *check, struct checked *one, size_t first)
{
	struct ctl *ctl = check->ctl;
	unsigned n = checked_placements(check), n_ours = 0;
	for (unsigned i = 0; i < n; i++)
		n_ours += sweep_is_ours(&check->sweep, first + i);
	if (!n_ours)
		return CTL_OK;
	if (files_check(&one->network, &ctl->error))
		return CTL_FAILED;
	int code = layers_init(&one->layers, ctl, &one->network);
	for (unsigned i = 0; i < n && !code; i++) {
		double since = ctl_now();
		one->layers.item = first + i;
		if (!sweep_is_ours(&check->sweep, first + i))
			continue;
		code = layers_run(&one->layers, check->is_placed ? &check->variants.list[i] : NULL);
		sweeping_ran(&check->sweep, first + i, since);
	}
	layers_end(&one->layers);
	if (!code && !one->layers.n)
		return ctl_invalid(ctl, "%.200s: nothing is expected in it: no \"expect\"", one->path);
	return code;
}

/* Reads all networks, also those of other shards: an invalid one is found before anything runs. */
static int read_network(struct check *check, struct checked *one, const char *path)
{
	struct ctl *ctl = check->ctl;
	one->path = path;
	if (network_load(path, &one->network, &ctl->error))
		return CTL_FAILED;
	return sweep_mix_file(&check->sweep, one->network.file, &ctl->error) ? CTL_FAILED : CTL_OK;
}

static int check_all(struct check *check, const struct args *args)
{
	const char *pictures = args_value(args, "--svg");
	int code = ctl_check_output(check->ctl, args, args_value(args, "--junit"));
	if (!code)
		code = sweeping_begin(check->ctl, args, "check", &check->sweep);
	if (!code)
		code = variants_parse(check->ctl, args, &check->variants);
	for (unsigned i = 0; i < check->n && !code; i++) {
		code = options_of(check->ctl, args, &check->list[i].layers);
		if (!code)
			code = read_network(check, &check->list[i], args->words[i]);
	}
	if (!code)
		code = find_items(check, args);
	bool made = !code && pictures && !mkdir(pictures, 0777);
	if (!code && pictures && !made && errno != EEXIST)
		code = ctl_fail(check->ctl, "%.200s: %s", pictures, strerror(errno));
	for (unsigned i = 0; i < check->n && !code; i++)
		code = check_network(check, &check->list[i], (size_t)i * checked_placements(check));
	if (made)
		rmdir(pictures); /* unless there are some */
	return code ? code : checked_report(check, args);
}

static int check_run(struct ctl *ctl, const struct args *args)
{
	struct check *check = memory_new(1, sizeof(*check));
	check->ctl = ctl;
	check->is_placed =
		args_has(args, "--layouts") || args_has(args, "--start-npu") || args_has(args, "--mode");
	check->list = memory_new(args->n_words, sizeof(*check->list));
	check->n = args->n_words;
	if (check->n > 1 && args_has(args, "--samples"))
		return ctl_usage(ctl, "--samples is of one network");
	return check_all(check, args);
}

const struct command check_command = {
	.options = check_options,
	.least = 1,
	.most = COMMAND_WORDS_ANY,
	.sweeps = true,
	.run = check_run,
	.notes =
		"NET.json is a network in the form of submit (a folder: the network.json in it). Its tensors "
		"name\n"
		"the arrays that they are to hold:\n"
		"  {\"tensors\": {\"y\": {\"shape\": …, \"dtype\": …, \"expect\": \"y.npy\"}, …}, "
		"\"operations\": […]}\n"
		"or an operation does: {\"expect\": \"y\", \"file\": \"y.npy\"}. A tensor is compared, integer "
		"by\n"
		"integer, after the last operation that writes it. Without --layouts, --start-npu and --mode the\n"
		"network runs once, as it is written. With one of them or more it runs in every combination; an\n"
		"option that is left out then has its default. A tensor that cannot have the layout is aligned;\n"
		"one that cannot have the mode is plain. Matrices and tensors with views keep their layout.\n"
		"See npumemctl(1), \"Checking a network\". A case of --shard is a network in a "
		"placement.\n" SWEEPING_NOTES,
};
