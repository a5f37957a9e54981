/* kernels: what can be run, and what each kernel takes. Needs no daemon: the rows are this version's. */
#include <string.h>
#include <unistd.h>

#include "client/ctl/command.h"
#include "client/ctl/core/kernels/kernels.h"
#include "client/ctl/core/output/output.h"

static const struct option kernels_options[] = {
	{"--names", NULL, "only the names, one a line", false},
	{NULL, NULL, NULL, false},
};

static void kernels_list(void)
{
	unsigned columns = terminal_columns(STDOUT_FILENO), width = 0;
	for (unsigned i = 0; i < npumem_n_kernel_rows; i++) {
		unsigned length = (unsigned)strlen(npumem_kernel_rows[i].name);
		width = length > width ? length : width;
	}
	for (unsigned i = 0; i < npumem_n_kernel_rows; i++) {
		const struct npumem_kernel_row *row = &npumem_kernel_rows[i];
		bool narrow = columns && columns < 2 * width;
		if (narrow)
			printf("%s\n    ", row->name);
		else
			printf("%-*s  ", (int)width, row->name);
		describe_wrap(stdout, row->summary, narrow ? 4 : width + 2, narrow ? 4 : width + 2, columns);
	}
}

static int kernels_json(struct ctl *ctl)
{
	json_t *array = json_array();
	for (unsigned i = 0; i < npumem_n_kernel_rows; i++)
		json_array_append_new(array, describe_object(&npumem_kernel_rows[i]));
	return ctl_print(ctl, json_pack("{s:o}", "kernels", array));
}

static int kernels_run(struct ctl *ctl, const struct args *args)
{
	const struct npumem_kernel_row *row = NULL;
	if (args->n_words && roles_kernel(args->words[0], &row, &ctl->error))
		return CTL_USAGE;
	if (args_has(args, "--names")) {
		for (unsigned i = 0; i < npumem_n_kernel_rows; i++)
			if (!row || row == &npumem_kernel_rows[i])
				printf("%s\n", npumem_kernel_rows[i].name);
		return CTL_OK;
	}
	if (ctl->json)
		return row ? ctl_print(ctl, describe_object(row)) : kernels_json(ctl);
	if (row)
		describe_print(stdout, row, terminal_columns(STDOUT_FILENO));
	else
		kernels_list();
	return CTL_OK;
}

const struct command kernels_command = {
	.options = kernels_options,
	.most = 1,
	.run = kernels_run,
	.notes = "  npumemctl kernels conv2d        (or: npumemctl run conv2d --help)\n"
		 "describes a kernel: its tensors and their shapes, its parameters with their values and "
		 "defaults,\n"
		 "its types, where it rounds, and the source of its formula.",
};
