/* record: what a daemon answers to all its clients, into a file, until it is interrupted. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "client/ctl/command.h"
#include "client/ctl/records/records.h"

static const struct option record_options[] = {
	{"--snapshot", "DIR", "begins with a snapshot, into DIR, which replay takes", false},
	{NULL, NULL, NULL, false},
};

static int record_run(struct ctl *ctl, const struct args *args)
{
	const char *directory = args_value(args, "--snapshot"), *file = args->words[0];
	uint64_t entries = UINT64_MAX;
	int code = ctl_connect(ctl);
	if (code)
		return code;
	/* New: an older recording stays, and another user's file, or what a link leads to, is not written. */
	int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return ctl_fail(ctl, "cannot write %.200s: %s", file, strerror(errno));
	code = recording_take(ctl, fd, directory ? NPUMEM_RECORD_SNAPSHOT : NPUMEM_RECORD_EMPTY, directory,
			      &entries);
	if (close(fd) && !code)
		code = ctl_fail(ctl, "cannot write %.200s: %s", file, strerror(errno));
	if (entries == UINT64_MAX) /* it has not begun */
		unlink(file);
	if (code)
		return code;
	if (ctl->json)
		return ctl_print(ctl, json_pack("{s:I}", "entries", (json_int_t)entries));
	printf("%" PRIu64 " entr%s\n", entries, entries == 1 ? "y" : "ies");
	return CTL_OK;
}

const struct command record_command = {
	.options = record_options,
	.least = 1,
	.most = 1,
	.run = record_run,
	.notes = "For root and the daemon's uid. FILE is new. A device with tensors needs --snapshot, and "
		 "--state-dir of "
		 "npumemd.\n"
		 "A kill, or more requests than this command can fetch, cuts the recording: its entries until "
		 "then can be used.",
};
