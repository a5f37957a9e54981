/* compact: tensors moved together, or what would be moved. */
#include "client/ctl/command.h"

#include <inttypes.h>
#include <stdlib.h>

static const struct option compact_options[] = {
	{"--dry-run", NULL, "only shows the moves", false},
	{NULL, NULL, NULL, false},
};

static json_t *compact_object(const struct npumem_move *moves, unsigned n)
{
	json_t *array = json_array();
	for (unsigned i = 0; i < n; i++) {
		json_t *one =
			json_pack("{s:s, s:I, s:I, s:I}", "name", moves[i].name, "from_address",
				  (json_int_t)moves[i].from_address, "to_address", (json_int_t)moves[i].to_address,
				  "bytes_per_npu", (json_int_t)moves[i].bytes_per_npu);
		if (json_array_append_new(array, one)) {
			json_decref(array);
			return NULL;
		}
	}
	return json_pack("{s:o}", "moves", array);
}

static int compact_run(struct ctl *ctl, const struct args *args)
{
	bool dry_run = args_has(args, "--dry-run");
	struct npumem_move *moves;
	unsigned n;
	int code = ctl_connect(ctl);
	if (code)
		return code;
	if (npumem_compact(ctl->npumem, dry_run, &moves, &n, &ctl->error))
		return CTL_FAILED;
	if (ctl->json) {
		code = ctl_print(ctl, compact_object(moves, n));
	} else {
		for (unsigned i = 0; i < n; i++)
			printf("%s: address %" PRId64 " -> %" PRId64 ", %" PRId64 " bytes per NPU\n",
			       moves[i].name[0] ? moves[i].name : "-", moves[i].from_address, moves[i].to_address,
			       moves[i].bytes_per_npu);
		printf("%u tensor%s %s\n", n, n == 1 ? "" : "s", dry_run ? "would move" : "moved");
	}
	free(moves);
	return code;
}

const struct command compact_command = {.options = compact_options, .run = compact_run};
