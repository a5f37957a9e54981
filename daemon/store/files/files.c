/* Owns the descriptors. A user that may write a file can cut it short, which is a memory fault for a process that
 * has it mapped: in a directory only files that no other user can open for writing are taken. The journal has the
 * lock (flock), which ends with the process. It also works with descriptors that an earlier process has passed
 * on. */
#include "daemon/store/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/store/files/aside.h"
#include "daemon/store/files/calls.h"
#include "daemon/store/image/manifest.h"

static int open_one(const struct opening *opening, enum format_file file)
{
	const struct store_options *options = opening->options;
	int fd = options->directory ? calls_open(options->hooks, opening->directory, opening_names[file],
						 O_RDWR | O_CREAT | O_NOFOLLOW)
				    : options->open(options->ctx, opening_names[file]);

	if (fd < 0)
		return opening_refuse(opening, file, fd, "cannot be opened: %s", strerror(-fd));
	opening->store->fds[file] = fd;
	return 0;
}

void files_note(struct opening *opening, enum format_file file, const struct statx *stat)
{
	opening->bytes[file] = stat->stx_size;
	opening->identities[file].inode = stat->stx_ino;
	if (stat->stx_mask & STATX_BTIME) {
		opening->identities[file].born_seconds = stat->stx_btime.tv_sec;
		opening->identities[file].born_ns = stat->stx_btime.tv_nsec;
	}
}

static int look_at(struct opening *opening, enum format_file file)
{
	struct statx stat;
	int status = calls_stat(opening->options->hooks, opening->store->fds[file], &stat);

	if (status)
		return opening_refuse(opening, file, status, "cannot be looked at: %s", strerror(-status));
	if (!S_ISREG(stat.stx_mode))
		return opening_judge(opening, file, STORE_FOREIGN, "is not a file");
	if (opening->options->directory && stat.stx_uid != geteuid())
		return opening_judge(opening, file, STORE_NOT_OURS,
				     "belongs to uid %u, not to uid %u, which npumemd runs as", stat.stx_uid,
				     (unsigned)geteuid());
	if (opening->options->directory && stat.stx_mode & 022)
		return opening_judge(opening, file, STORE_NOT_OURS, "may be written by others (mode %04o)",
				     stat.stx_mode & 07777);
	files_note(opening, file, &stat);
	return 0;
}

/* Opens and locks the journal. */
static int open_journal(struct opening *opening)
{
	struct store *store = opening->store;
	int status = open_one(opening, FORMAT_JOURNAL);

	if (status)
		return status;
	status = calls_lock(opening->options->hooks, store->fds[FORMAT_JOURNAL]);
	if (status == -EBUSY)
		return opening_judge(opening, FORMAT_JOURNAL, STORE_IN_USE, "is in use by another npumemd");
	return status ? opening_refuse(opening, FORMAT_JOURNAL, status, "cannot be locked: %s", strerror(-status))
		      : 0;
}

static int open_all(struct opening *opening)
{
	bool is_moved = false;
	int status = open_journal(opening);

	if (!status && opening->directory >= 0)
		status = aside_finish(opening, &is_moved);
	if (!status && is_moved) {
		close(opening->store->fds[FORMAT_JOURNAL]);
		opening->store->fds[FORMAT_JOURNAL] = -1;
		status = open_journal(opening);
	}
	if (!status)
		status = look_at(opening, FORMAT_JOURNAL);
	for (enum format_file file = FORMAT_MEMORY; !status && file < FORMAT_FILES; file++) {
		status = open_one(opening, file);
		if (!status)
			status = look_at(opening, file);
	}
	if (status)
		return status;
	/* So that new files survive a loss of power. */
	return opening->directory < 0 ? 0 : calls_sync(opening->options->hooks, opening->directory);
}

static bool has_bytes(int directory, const char *name)
{
	struct stat stat;

	return !fstatat(directory, name, &stat, AT_SYMLINK_NOFOLLOW) && stat.st_size;
}

/* The journal of a snapshot is written last, and until then npumemctl uses another name for the directory. The
 * journal of a new state is made first, so that other files without one are not an unfinished new state. */
int files_check_partial(const struct opening *opening)
{
	const char *path = opening->options->directory, *slash = strrchr(path, '/');
	bool is_begun = has_bytes(opening->directory, MANIFEST_NAME);

	if (strstr(slash && slash[1] ? slash : path, ".partial-"))
		return opening_judge(opening, FORMAT_JOURNAL, STORE_PARTIAL,
				     "the directory is of a snapshot that was not finished (.partial-)");
	for (enum format_file file = FORMAT_MEMORY; file < FORMAT_FILES; file++)
		is_begun = is_begun || has_bytes(opening->directory, opening_names[file]);
	if (!is_begun || has_bytes(opening->directory, opening_names[FORMAT_JOURNAL]))
		return 0;
	return opening_judge(opening, FORMAT_JOURNAL, STORE_PARTIAL,
			     "is missing, and other files are there: a snapshot that was not finished, or a state "
			     "whose journal was removed");
}

/* Another user that can write to the directory can put files of an older state there, or take the lock away. */
static int check_directory(const struct opening *opening, int directory)
{
	const char *path = opening->options->directory;
	struct statx stat;
	int status = calls_stat(opening->options->hooks, directory, &stat);

	if (status)
		snprintf(opening->error, STORE_ERROR_BYTES, "%.200s: cannot be looked at: %s", path,
			 strerror(-status));
	else if (stat.stx_uid != geteuid())
		snprintf(opening->error, STORE_ERROR_BYTES,
			 "%.200s: the directory belongs to uid %u, not to uid %u, which npumemd runs as", path,
			 stat.stx_uid, (unsigned)geteuid());
	else if (stat.stx_mode & 022)
		snprintf(opening->error, STORE_ERROR_BYTES,
			 "%.200s: the directory may be written by others (mode %04o): chmod go-w, or another one",
			 path, stat.stx_mode & 07777);
	else
		return 0;
	if (!status)
		opening->report->verdict = STORE_NOT_OURS;
	return status ? status : -EPERM;
}

/* The directory's descriptor, or -errno. */
static int open_directory(const struct opening *opening)
{
	const struct store_options *options = opening->options;
	int status = calls_make_directory(options->hooks, AT_FDCWD, options->directory);
	int directory =
		status ? status : calls_open(options->hooks, AT_FDCWD, options->directory, O_RDONLY | O_DIRECTORY);

	if (directory < 0) {
		snprintf(opening->error, STORE_ERROR_BYTES, "%.200s: cannot be opened: %s", options->directory,
			 strerror(-directory));
		return directory;
	}
	status = check_directory(opening, directory);
	if (status)
		close(directory);
	return status ? status : directory;
}

int files_open(struct opening *opening)
{
	int status = 0;

	if (opening->options->directory) {
		int directory = open_directory(opening);

		if (directory < 0)
			return directory;
		opening->directory = directory;
		status = files_check_partial(opening);
	}
	return status ? status : open_all(opening);
}

void files_close(struct store *store)
{
	for (enum format_file file = FORMAT_JOURNAL; file < FORMAT_FILES; file++)
		if (store->fds[file] >= 0)
			close(store->fds[file]);
}

int files_read_page(const struct opening *opening, enum format_file file, struct format_page *page)
{
	int64_t n = calls_read(opening->options->hooks, opening->store->fds[file], page, sizeof(*page), 0);

	return n < 0 ? opening_refuse(opening, file, (int)n, "cannot be read: %s", strerror((int)-n)) : 0;
}
