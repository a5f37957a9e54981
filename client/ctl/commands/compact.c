/* compact: tensors moved together, or what would be moved. */
#include "client/ctl/command.h"

#include <inttypes.h>

#include "client/ctl/core/output/output.h"

static const struct option compact_options[] = {
	{"--dry-run", NULL, "only shows the moves", false},
	{NULL, NULL, NULL, false},
};

static json_t *compact_object(const struct npumem_compacted *compacted)
{
	json_t *array = json_array();
	for (unsigned i = 0; i < compacted->n_moves; i++) {
		const struct npumem_move *move = compacted->moves[i];
		json_t *one = json_pack("{s:s, s:I, s:I, s:I}", "name", move->name, "from_address",
					(json_int_t)move->from_address, "to_address", (json_int_t)move->to_address,
					"bytes_per_npu", (json_int_t)move->bytes_per_npu);
		jsons_append(&array, one);
	}
	return json_pack("{s:o, s:b}", "moves", array, "cut", compacted->cut);
}

static int compact_run(struct ctl *ctl, const struct args *args)
{
	bool dry_run = args_has(args, "--dry-run");
	const struct npumem_compacted *compacted;
	int code = ctl_connect(ctl);
	if (code)
		return code;
	if (npumem_compact(ctl->npumem, dry_run, &compacted, &ctl->error))
		return CTL_FAILED;
	if (ctl->json)
		return ctl_print(ctl, compact_object(compacted));
	unsigned n = compacted->n_moves;
	for (unsigned i = 0; i < n; i++) {
		const struct npumem_move *move = compacted->moves[i];
		printf("%s: address %" PRId64 " -> %" PRId64 ", %" PRId64 " bytes per NPU\n",
		       move->name[0] ? move->name : "-", move->from_address, move->to_address,
		       move->bytes_per_npu);
	}
	printf("%s%u tensor%s %s\n", compacted->cut ? "more than " : "", n, n == 1 ? "" : "s",
	       dry_run ? "would move" : "moved");
	return CTL_OK;
}

const struct command compact_command = {.options = compact_options, .run = compact_run};
