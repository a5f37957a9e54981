/* snapshot: a daemon's state as it is at one moment, into a directory that another daemon starts from. */
#include <inttypes.h>

#include "client/ctl/command.h"
#include "client/ctl/records/records.h"

static int next(struct ctl *ctl, void *context, const struct npumem_piece **piece)
{
	uint64_t *number = context;
	if (!*number) {
		if (npumem_snapshot(ctl->npumem, 0, piece, &ctl->error))
			return CTL_FAILED;
		*number = (*piece)->snapshot;
	}
	return npumem_snapshot(ctl->npumem, *number, piece, &ctl->error) ? CTL_FAILED : CTL_OK;
}

static int snapshot_run(struct ctl *ctl, const struct args *args)
{
	const char *directory = args->words[0];
	const struct npumem_info *info;
	uint64_t number = 0, bytes;
	int code = ctl_info(ctl, &info);
	const struct npumem_geometry g = code ? (struct npumem_geometry){.n_npus = 0} : info->geometry;
	if (!code)
		code = snapshotting_take(ctl, directory, next, &number, &bytes);
	if (code)
		return code;
	if (ctl->json)
		return ctl_print(ctl, json_pack("{s:s, s:I}", "directory", directory, "bytes", (json_int_t)bytes));
	printf("%" PRIu64 " bytes in %s, of a device of %" PRId64 " NPUs of %" PRId64 " bytes\n", bytes, directory,
	       g.n_npus, g.npu_bytes);
	return CTL_OK;
}

const struct command snapshot_command = {
	.least = 1,
	.most = 1,
	.run = snapshot_run,
	.notes = "For root and the daemon's uid. The daemon needs --state-dir. DIR must be new or empty; it "
		 "appears when the\n"
		 "snapshot is whole. npumemd --state-dir DIR starts from it, as the owner of its files.",
};
