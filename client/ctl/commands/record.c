/* record: what a daemon answers to all its clients, into a file, until it is interrupted. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <npumem/record.h>

#include "client/ctl/command.h"

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

static int record_until(struct ctl *ctl, const struct npumem_record *record)
{
	const struct timespec pause = {0, 5000000};
	while (!interrupted && !record->lost) {
		if (npumem_record_take(ctl->npumem, record, &ctl->error))
			return CTL_FAILED;
		if (!record->taken)
			nanosleep(&pause, NULL);
	}
	if (npumem_record_stop(ctl->npumem, record, &ctl->error))
		return CTL_FAILED;
	if (record->lost)
		return ctl_fail(ctl, "the record is of no use after request %" PRIu64 ": %s", record->entries,
				record->reason);
	return CTL_OK;
}

static int record_run(struct ctl *ctl, const struct args *args)
{
	struct sigaction action = {.sa_handler = on_signal};
	const struct npumem_record *record;
	int code = ctl_connect(ctl);
	if (code)
		return code;
	int fd = open(args->words[0], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return ctl_fail(ctl, "cannot write %.200s: %s", args->words[0], strerror(errno));
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (npumem_record_start(ctl->npumem, fd, &record, &ctl->error)) {
		close(fd);
		return CTL_FAILED;
	}
	fprintf(stderr, "npumemctl: recording; interrupt to end it\n");
	code = record_until(ctl, record);
	if (close(fd) && !code)
		code = ctl_fail(ctl, "cannot write %.200s: %s", args->words[0], strerror(errno));
	if (code)
		return code;
	if (ctl->json)
		return ctl_print(ctl, json_pack("{s:I}", "entries", (json_int_t)record->entries));
	printf("%" PRIu64 " entries\n", record->entries);
	return CTL_OK;
}

const struct command record_command = {
	.least = 1,
	.most = 1,
	.run = record_run,
	.notes = "for root and the daemon's uid, on a device without tensors; a record that lost something, "
		 "because "
		 "it\n"
		 "was slower than what was asked, cannot be replayed",
};
