/* A live record is in memory, and gone with the process. OUT is made when all that is to be in it is there. */
#define _GNU_SOURCE /* memfd_create */
#include "client/ctl/records/records.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/ctl/core/output/output.h"
#include "client/ctl/core/report/report.h"

const struct option rendering_options[] = {
	{"--live", NULL, "records now, until it is interrupted, instead of RECORD", false},
	{NULL, NULL, NULL, false},
};

typedef bool writer(FILE *out, const json_t *chronicle);

static int print_counts(struct ctl *ctl, const char *path, const json_t *chronicle)
{
	size_t entries = json_array_size(json_object_get(chronicle, "entries")),
	       operations = json_array_size(json_object_get(chronicle, "operations"));
	if (ctl->json)
		return ctl_print(ctl, json_pack("{s:s, s:I, s:I, s:O*}", "file", path, "entries",
						(json_int_t)entries, "operations", (json_int_t)operations,
						"cut_at_byte", json_object_get(chronicle, "cut_at_byte")));
	printf("%s: %zu entr%s, %zu operation%s\n", path, entries, entries == 1 ? "y" : "ies", operations,
	       present_s(operations));
	return CTL_OK;
}

static int write_file(struct ctl *ctl, const char *path, const json_t *chronicle, writer *write)
{
	FILE *out = fopen(path, "w");
	bool written = out && write(out, chronicle);
	int err = errno;
	if (out && fclose(out) && written) {
		written = false;
		err = errno;
	}
	return written ? print_counts(ctl, path, chronicle)
		       : ctl_fail(ctl, "cannot write %.200s: %s", path, strerror(err));
}

static int render(struct ctl *ctl, const char *record, const char *path, writer *write)
{
	json_t *chronicle = chronicle_read(record, &ctl->error);
	if (!chronicle)
		return CTL_FAILED;
	recording_warn_cut(ctl, record, (uint64_t)jsons_number(chronicle, "cut_at_byte"),
			   json_array_size(json_object_get(chronicle, "entries")));
	if (strcmp(path, "-"))
		return write_file(ctl, path, chronicle, write);
	return write(stdout, chronicle) ? CTL_OK : ctl_fail(ctl, "cannot write the result: %s", strerror(errno));
}

static int render_live(struct ctl *ctl, const char *path, writer *write)
{
	char record[32];
	uint64_t entries;
	int fd = memfd_create("record", MFD_CLOEXEC);
	if (fd < 0)
		return ctl_fail(ctl, "no memory for a recording: %s", strerror(errno));
	snprintf(record, sizeof(record), "/proc/self/fd/%d", fd);
	int code = recording_take(ctl, fd, NPUMEM_RECORD_WATCH, NULL, &entries);
	if (!code)
		code = render(ctl, record, path, write);
	close(fd);
	return code;
}

int rendering_run(struct ctl *ctl, const struct args *args, writer *write)
{
	bool live = args_has(args, "--live");
	if (args->n_words != (live ? 1 : 2))
		return ctl_usage(ctl,
				 live ? "with --live, OUT alone is needed: the file to write"
				      : "two words are needed: RECORD, a recording, and OUT, the file to write");
	if (ctl_check_output(ctl, args, args->words[!live]))
		return CTL_USAGE;
	return live ? render_live(ctl, args->words[0], write) : render(ctl, args->words[0], args->words[1], write);
}
