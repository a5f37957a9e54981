/* report: a record as a page for a browser. */
#define _GNU_SOURCE /* memfd_create */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/ctl/command.h"
#include "client/ctl/core/report/chronicle.h"
#include "client/ctl/core/report/page.h"
#include "client/ctl/recording.h"

static const struct option report_options[] = {
	{"--live", NULL, "records now, until it is interrupted, instead of RECORD", false},
	{NULL, NULL, NULL, false},
};

static int tell(struct ctl *ctl, const char *path, const json_t *chronicle)
{
	size_t entries = json_array_size(json_object_get(chronicle, "entries")),
	       operations = json_array_size(json_object_get(chronicle, "operations"));
	if (ctl->json)
		return ctl_print(ctl, json_pack("{s:s, s:I, s:I}", "file", path, "entries", (json_int_t)entries,
						"operations", (json_int_t)operations));
	printf("%s: %zu requests, %zu operations\n", path, entries, operations);
	return CTL_OK;
}

static int write_page(struct ctl *ctl, const char *record, const char *path)
{
	json_t *chronicle = chronicle_read(record, &ctl->error);
	if (!chronicle)
		return CTL_FAILED;
	FILE *out = fopen(path, "w");
	bool written = out && page_write(out, chronicle);
	int err = errno;
	if (out && fclose(out) && written) {
		written = false;
		err = errno;
	}
	int code = written ? tell(ctl, path, chronicle)
			   : ctl_fail(ctl, "cannot write %.200s: %s", path, strerror(err));
	json_decref(chronicle);
	return code;
}

/* The record is in memory, and gone with the process. */
static int report_live(struct ctl *ctl, const char *path)
{
	char record[32];
	uint64_t entries;
	int fd = memfd_create("record", MFD_CLOEXEC);
	if (fd < 0)
		return ctl_fail(ctl, "no memory for a record: %s", strerror(errno));
	snprintf(record, sizeof(record), "/proc/self/fd/%d", fd);
	int code = recording_take(ctl, fd, &entries);
	if (!code)
		code = write_page(ctl, record, path);
	close(fd);
	return code;
}

static int report_run(struct ctl *ctl, const struct args *args)
{
	bool live = args_has(args, "--live");
	if (args->n_words != (live ? 1 : 2))
		return ctl_usage(ctl, live ? "report --live takes the page's file alone"
					   : "report needs a record and the page's file");
	return live ? report_live(ctl, args->words[0]) : write_page(ctl, args->words[0], args->words[1]);
}

const struct command report_command = {
	.options = report_options,
	.least = 1,
	.most = 2,
	.run = report_run,
	.notes = "RECORD is a file of npumemctl record; --live is for whom that is for. The page is one file that "
		 "a "
		 "browser\nopens without a server or a network",
};
