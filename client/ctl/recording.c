/* What a daemon answers to all its clients, into a file, until SIGINT or SIGTERM. */
#include "client/ctl/recording.h"

#include <inttypes.h>
#include <signal.h>
#include <time.h>

#include <npumem/record.h>

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

int recording_take(struct ctl *ctl, int fd, uint64_t *entries)
{
	struct sigaction action = {.sa_handler = on_signal};
	const struct npumem_record *record;
	int code = ctl_connect(ctl);
	if (code)
		return code;
	interrupted = 0;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	if (npumem_record_start(ctl->npumem, fd, &record, &ctl->error))
		return CTL_FAILED;
	fprintf(stderr, "npumemctl: recording; interrupt to end it\n");
	code = record_until(ctl, record);
	*entries = record->entries;
	return code;
}
