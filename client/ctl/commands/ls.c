/* ls: the tensors that this uid may see; of the others, their owner and size. */
#include "client/ctl/command.h"

#include <inttypes.h>

#include "client/ctl/core/present.h"
#include "client/ctl/core/table.h"

static int ls_json(struct ctl *ctl, const struct npumem_tensors *tensors)
{
	json_t *array = json_array();
	for (unsigned i = 0; i < tensors->n && array; i++) {
		json_t *one = json_object();
		if (!one || present_tensor(one, tensors->list[i]) || json_array_append(array, one)) {
			json_decref(array);
			array = NULL;
		}
		json_decref(one);
	}
	return ctl_print(ctl, json_pack("{s:o}", "tensors", array));
}

static void ls_flags(const struct npumem_tensor *tensor, char *flags)
{
	*flags++ = tensor->sealed ? 's' : '-';
	*flags++ = tensor->dma_only ? 'd' : '-';
	*flags++ = tensor->pinned ? 'p' : '-';
	*flags++ = tensor->lends ? 'l' : '-';
	*flags++ = tensor->borrows ? 'b' : '-';
	*flags = 0;
}

static int ls_text(struct ctl *ctl, const struct npumem_tensors *tensors, uint32_t uid)
{
	static const bool right[] = {false, false, false, false, false, true, true, true, false, false};
	struct table table;
	char text[PRESENT_TEXT_BYTES], flags[8];
	if (!tensors->n) {
		printf("no tensors\n");
		return CTL_OK;
	}
	table_init(&table, sizeof(right), right);
	const char *titles[] = {"NAME",	 "DTYPE",  "SHAPE",	"LAYOUT", "MODE",
				"START", "OFFSET", "BYTES/NPU", "FLAGS",  "STATE"};
	for (unsigned i = 0; i < sizeof(right); i++)
		table_cell(&table, "%s", titles[i]);
	for (unsigned i = 0; i < tensors->n; i++) {
		const struct npumem_tensor *tensor = tensors->list[i];
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
	return table_print(&table, stdout) ? CTL_OK : ctl_fail(ctl, "no memory for the table");
}

static int ls_run(struct ctl *ctl, const struct args *args)
{
	const struct npumem_tensors *tensors;
	const struct npumem_info *info;
	(void)args;
	int code = ctl_connect(ctl);
	if (code)
		return code;
	if (npumem_info(ctl->npumem, &info, &ctl->error) || npumem_list(ctl->npumem, &tensors, &ctl->error))
		return CTL_FAILED;
	return ctl->json ? ls_json(ctl, tensors) : ls_text(ctl, tensors, info->uid);
}

const struct command ls_command = {
	.run = ls_run,
	.notes = "flags: s sealed, d dma_only, p pinned, l lends empty blocks, b borrows them",
};
