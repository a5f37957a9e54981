/* Placements from the command line: every combination of layouts, start NPUs and modes. */
#include "client/ctl/conform/conform.h"

#include <inttypes.h>
#include <string.h>

#include "client/ctl/core/words/words.h"

/* A list of names by `parse`. */
static int names_parse(struct ctl *ctl, const char *what, const char *text, int (*parse)(const char *),
		       const char *(*name_of)(int), int *values, unsigned most, unsigned *n)
{
	for (*n = 0;; text++) {
		char name[24];
		size_t length = strcspn(text, ",");
		snprintf(name, sizeof(name), "%.*s", (int)(length < sizeof(name) ? length : sizeof(name)), text);
		if (*n == most)
			return ctl_usage(ctl, "more than %u %ss", most, what);
		if (!(values[(*n)++] = parse(name))) {
			spec_no_such_name(what, name, name_of, &ctl->error);
			return CTL_USAGE;
		}
		text += length;
		if (!*text)
			return CTL_OK;
	}
}

int variants_parse(struct ctl *ctl, const struct args *args, struct variants *variants)
{
	int layouts[8] = {NPUMEM_ALIGNED}, modes[8] = {NPUMEM_MODE_PLAIN};
	int64_t starts[VARIANTS_STARTS_MAX] = {0};
	unsigned n_layouts = 1, n_modes = 1, n_starts = 1;
	const char *layout = args_value(args, "--layouts"), *mode = args_value(args, "--mode");
	const char *start = args_value(args, "--start-npu");
	int code = CTL_OK;
	variants->n = 0;
	if (layout && !strcmp(layout, "all"))
		layout = "aligned,compact,strided,matrix";
	if (layout)
		code = names_parse(ctl, "layout", layout, npumem_layout_parse, npumem_layout_name, layouts, 4,
				   &n_layouts);
	if (!code && mode)
		code = names_parse(ctl, "storage mode", mode, npumem_mode_parse, npumem_mode_name, modes, 4,
				   &n_modes);
	if (!code && start &&
	    numbers_list("--start-npu", start, starts, VARIANTS_STARTS_MAX, &n_starts, &ctl->error))
		code = CTL_USAGE;
	for (unsigned l = 0; l < n_layouts && !code; l++)
		for (unsigned m = 0; m < n_modes; m++)
			for (unsigned s = 0; s < n_starts; s++)
				variants->list[variants->n++] = (struct variant){layouts[l], modes[m], starts[s]};
	return code;
}

int variants_check(struct ctl *ctl, const struct variants *variants, const struct npumem_geometry *geometry)
{
	for (unsigned i = 0; i < variants->n; i++)
		if (variants->list[i].start_npu >= geometry->n_npus)
			return ctl_fail(ctl,
					"start NPU %" PRId64 " is not below the %" PRId64 " NPUs of this device",
					variants->list[i].start_npu, geometry->n_npus);
	return CTL_OK;
}
