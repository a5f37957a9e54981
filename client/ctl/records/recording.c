/* What a daemon answers to all its clients, into a file, until SIGINT or SIGTERM. */
#include "client/ctl/records/records.h"

#include <inttypes.h>
#include <signal.h>
#include <time.h>

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

static int fail_lost(struct ctl *ctl, const struct npumem_record *record)
{
	return ctl_fail(ctl, "the recording ends after entry %" PRIu64 ": %s", record->entries, record->reason);
}

void recording_warn_cut(const struct ctl *ctl, const char *path, uint64_t byte, uint64_t entries)
{
	char text[400];
	snprintf(text, sizeof(text),
		 "%.200s was cut: it ends after entry %" PRIu64 ", at byte %" PRIu64 "; what followed is missing",
		 path, entries, byte);
	ctl_warn(ctl, byte ? text : "");
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
	/* Why it is lost says more than that there is nothing to end. */
	int status = npumem_record_stop(ctl->npumem, record, record->lost ? NULL : &ctl->error);
	if (record->lost)
		return fail_lost(ctl, record);
	return status ? CTL_FAILED : CTL_OK;
}

/* ---- with a snapshot ---- */

struct beginning {
	int fd;
	const struct npumem_record *record; /* NULL: it has not begun */
};

/* The daemon keeps what is answered meanwhile, up to a bound: it is fetched first, but does not keep the snapshot
 * waiting for ever. */
static int next_piece(struct ctl *ctl, void *context, const struct npumem_piece **piece)
{
	enum { TAKES = 16 };
	struct beginning *beginning = context;
	if (!beginning->record && npumem_record_start_from(ctl->npumem, beginning->fd, NPUMEM_RECORD_SNAPSHOT,
							   &beginning->record, &ctl->error))
		return CTL_FAILED;
	for (unsigned i = 0; i < TAKES && (!i || beginning->record->taken); i++)
		if (npumem_record_take(ctl->npumem, beginning->record, &ctl->error))
			return CTL_FAILED;
	if (beginning->record->lost)
		return fail_lost(ctl, beginning->record);
	return npumem_record_piece(ctl->npumem, beginning->record, piece, &ctl->error) ? CTL_FAILED : CTL_OK;
}

static int start(struct ctl *ctl, int fd, enum npumem_record_from from, const char *directory,
		 const struct npumem_record **record)
{
	struct beginning beginning = {.fd = fd};
	uint64_t bytes;
	int code = CTL_OK;
	if (from == NPUMEM_RECORD_SNAPSHOT)
		code = snapshotting_take(ctl, directory, next_piece, &beginning, &bytes);
	else if (npumem_record_start_from(ctl->npumem, fd, from, &beginning.record, &ctl->error))
		code = CTL_FAILED;
	*record = beginning.record;
	return code;
}

int recording_take(struct ctl *ctl, int fd, enum npumem_record_from from, const char *directory, uint64_t *entries)
{
	/* Once: the second ends the program, also where the daemon does not answer. */
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
	const struct npumem_record *record;
	int code = ctl_connect(ctl);
	if (code)
		return code;
	interrupted = 0;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	code = start(ctl, fd, from, directory, &record);
	if (code)
		return code;
	fprintf(stderr, "npumemctl: recording; interrupt to end it\n");
	code = record_until(ctl, record);
	*entries = record->entries;
	return code;
}
