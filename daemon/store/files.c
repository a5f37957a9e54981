/* Owns the descriptors. Who may write a file can cut it short, which is a fault in memory for whoever has it
 * mapped: in a directory only files that no other user can open for writing are taken. The lock is the journal's,
 * and goes with the process; it has to do with descriptors that were handed on from a process before, too. */
#include "daemon/store/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/store/calls.h"

static int open_one(const struct opening *opening, int directory, enum format_file file)
{
	const struct store_options *options = opening->options;
	int fd = options->directory ? calls_open(options->hooks, directory, opening_names[file],
						 O_RDWR | O_CREAT | O_NOFOLLOW)
				    : options->open(options->ctx, opening_names[file]);

	if (fd < 0)
		return opening_refuse(opening, file, fd, "cannot be opened: %s", strerror(-fd));
	opening->store->fds[file] = fd;
	return 0;
}

static int look_at(struct opening *opening, enum format_file file)
{
	struct statx stat;
	int status = calls_stat(opening->options->hooks, opening->store->fds[file], &stat);

	if (status)
		return opening_refuse(opening, file, status, "cannot be looked at: %s", strerror(-status));
	if (!S_ISREG(stat.stx_mode))
		return opening_refuse(opening, file, -EINVAL, "is not a file");
	if (opening->options->directory && stat.stx_uid != geteuid())
		return opening_refuse(opening, file, -EPERM,
				      "belongs to uid %u, not to uid %u, which npumemd runs as", stat.stx_uid,
				      (unsigned)geteuid());
	if (opening->options->directory && stat.stx_mode & 022)
		return opening_refuse(opening, file, -EPERM, "may be written by others (mode %04o)",
				      stat.stx_mode & 07777);
	opening->bytes[file] = stat.stx_size;
	opening->identities[file].inode = stat.stx_ino;
	if (stat.stx_mask & STATX_BTIME) {
		opening->identities[file].born_seconds = stat.stx_btime.tv_sec;
		opening->identities[file].born_ns = stat.stx_btime.tv_nsec;
	}
	return 0;
}

static int open_all(struct opening *opening, int directory)
{
	for (enum format_file file = FORMAT_JOURNAL; file < FORMAT_FILES; file++) {
		int status = open_one(opening, directory, file);
		if (!status && file == FORMAT_JOURNAL) {
			status = calls_lock(opening->options->hooks, opening->store->fds[file]);
			if (status == -EBUSY)
				opening_refuse(opening, file, status, "is in use by another npumemd");
			else if (status)
				opening_refuse(opening, file, status, "cannot be locked: %s", strerror(-status));
		}
		if (!status)
			status = look_at(opening, file);
		if (status)
			return status;
	}
	/* Files that were made here are found after a loss of power. */
	return directory < 0 ? 0 : calls_sync(opening->options->hooks, directory);
}

int files_open(struct opening *opening)
{
	const struct store_options *options = opening->options;
	int directory = -1;

	if (options->directory) {
		directory = calls_make_directory(options->hooks, options->directory);
		if (!directory)
			directory =
				calls_open(options->hooks, AT_FDCWD, options->directory, O_RDONLY | O_DIRECTORY);
		if (directory < 0) {
			snprintf(opening->error, STORE_ERROR_BYTES, "%.200s: cannot be opened: %s",
				 options->directory, strerror(-directory));
			return directory;
		}
	}
	int status = open_all(opening, directory);
	if (directory >= 0)
		close(directory);
	return status;
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
