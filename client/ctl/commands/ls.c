/* ls: the tensors that this uid may see; of the others, their owner and size. */
#include "client/ctl/command.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl/core/output/output.h"
#include "client/ctl/ctl.h"
#include "client/ctl/devices/devices.h"

static void ls_flags(const struct npumem_tensor *tensor, char *flags)
{
	*flags++ = tensor->sealed ? 's' : '-';
	*flags++ = tensor->dma_only ? 'd' : '-';
	*flags++ = tensor->pinned ? 'p' : '-';
	*flags++ = tensor->lends ? 'l' : '-';
	*flags++ = tensor->borrows ? 'b' : '-';
	*flags = 0;
}

static int ls_text(const struct npumem_tensor *const *list, unsigned n, uint32_t uid)
{
	struct table table;
	char text[PRESENT_TEXT_BYTES], flags[8];
	if (!n) {
		printf("no tensors\n");
		return CTL_OK;
	}
	table_init(&table, "NAME|DTYPE|SHAPE|LAYOUT|MODE|>START|>OFFSET|>BYTES/NPU|FLAGS|STATE");
	for (unsigned i = 0; i < n; i++) {
		const struct npumem_tensor *tensor = list[i];
		const struct npumem_place *p = &tensor->place;
		const char *layout = npumem_layout_name(p->layout), *mode = npumem_mode_name(p->mode);
		table_cell(&table, "%s", present_name(tensor, uid, text));
		table_cell(&table, "%s", present_dtype(p, text));
		table_cell(&table, "%s", present_shape(p, text));
		table_cell(&table, "%s", layout ? layout : "-");
		table_cell(&table, "%s", mode ? mode : "-");
		table_cell(&table, "%" PRId64, p->start_npu);
		table_cell(&table, "%" PRId64, p->offset == NPUMEM_ANY ? 0 : p->offset);
		table_cell(&table, "%" PRId64, p->bytes_per_npu);
		ls_flags(tensor, flags);
		table_cell(&table, "%s", flags);
		table_cell(&table, tensor->base ? "%s, view of %s" : "%s", tensor->state,
			   tensor->base_name[0] ? tensor->base_name : "a tensor without a name");
	}
	table_print(&table, stdout);
	return CTL_OK;
}

/* By owner and name, those without a name by age. */
static int compare(const void *a, const void *b)
{
	const struct npumem_tensor *one = *(const struct npumem_tensor *const *)a,
				   *other = *(const struct npumem_tensor *const *)b;
	int names = strcmp(one->name, other->name);
	if (one->uid != other->uid)
		return one->uid < other->uid ? -1 : 1;
	return names ? names : (one->handle > other->handle) - (one->handle < other->handle);
}

static int ls_run(struct ctl *ctl, const struct args *args)
{
	struct selection selection = {.n = 0};
	const struct npumem_info *info;
	int code = ctl_info(ctl, &info);
	if (code)
		return code;
	code = selection_all(ctl, info->uid, args->words, args->n_words, &selection);
	if (code)
		return code;
	if (selection.n)
		qsort(selection.list, selection.n, sizeof(*selection.list), compare);
	return ctl->json ? ctl_print(ctl,
				     json_pack("{s:o}", "tensors", present_tensors(selection.list, selection.n)))
			 : ls_text(selection.list, selection.n, info->uid);
}

const struct command ls_command = {
	.most = COMMAND_WORDS_ANY,
	.run = ls_run,
	.all = devices_ls,
	.notes = "  npumemctl ls 'conv*' '1000:*'\n"
		 "* is anything, ? one letter, [ab] one of these; another uid's are UID:NAME.\n"
		 "In the order of owners and names.\n"
		 "flags: s sealed, d dma_only, p pinned, l lends empty blocks, b borrows them",
};
