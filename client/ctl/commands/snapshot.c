/* snapshot: a daemon's state as it is at one moment, into a directory that another daemon starts from. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/ctl/command.h"

enum { FILES_MAX = 16 };

/* Written under a name of its own beside `to`, which it gets when it is whole. */
struct snapshot {
	const char *to;
	char path[PATH_MAX];
	int directory; /* -1: it is not there */
	int file;
	char names[FILES_MAX][NAME_MAX + 1]; /* of its files, so that they can be removed; the last is open */
	unsigned n_files;
	uint64_t bytes; /* that were told */
};

static int fail(struct ctl *ctl, const char *path)
{
	return ctl_fail(ctl, "cannot write %.200s: %s", path, strerror(errno));
}

/* It does not exist, or is empty. */
static int check_target(struct ctl *ctl, const char *path)
{
	DIR *directory = opendir(path);
	const struct dirent *entry;
	int code = CTL_OK;

	if (!directory && errno == ENOENT)
		return CTL_OK;
	if (!directory)
		return fail(ctl, path);
	while (code == CTL_OK && (entry = readdir(directory)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			code = ctl_invalid(ctl, "%.200s is not empty", path);
	closedir(directory);
	return code;
}

static int open_directory(struct ctl *ctl, struct snapshot *snapshot)
{
	size_t n = strlen(snapshot->to);

	while (n > 1 && snapshot->to[n - 1] == '/')
		n--;
	if ((size_t)snprintf(snapshot->path, sizeof(snapshot->path), "%.*s.partial-XXXXXX", (int)n,
			     snapshot->to) >= sizeof(snapshot->path))
		return ctl_invalid(ctl, "the name of the directory is too long");
	if (!mkdtemp(snapshot->path))
		return fail(ctl, snapshot->path);
	snapshot->directory = open(snapshot->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return snapshot->directory < 0 ? fail(ctl, snapshot->path) : CTL_OK;
}

/* ---- files ---- */

static int close_file(struct ctl *ctl, struct snapshot *snapshot)
{
	int fd = snapshot->file;

	snapshot->file = -1;
	if (fd < 0)
		return CTL_OK;
	if (fsync(fd) == 0)
		return close(fd) ? fail(ctl, snapshot->path) : CTL_OK;
	int code = fail(ctl, snapshot->path);
	close(fd);
	return code;
}

/* A daemon may be anybody: what it names is a file in the directory, and nothing else. */
static bool is_name(const char *name)
{
	size_t n = 0;

	while (islower((unsigned char)name[n]))
		n++;
	return n && n <= NAME_MAX && !name[n];
}

static int open_file(struct ctl *ctl, struct snapshot *snapshot, const struct npumem_piece *piece)
{
	int code = close_file(ctl, snapshot);

	if (code)
		return code;
	if (!is_name(piece->file) || snapshot->n_files == FILES_MAX || piece->file_bytes > INT64_MAX)
		return ctl_fail(ctl, "the daemon tells of a file that no snapshot has");
	snapshot->file = openat(snapshot->directory, piece->file,
				O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (snapshot->file < 0)
		return fail(ctl, snapshot->path);
	strcpy(snapshot->names[snapshot->n_files++], piece->file);
	return ftruncate(snapshot->file, (off_t)piece->file_bytes) ? fail(ctl, snapshot->path) : CTL_OK;
}

static int write_piece(struct ctl *ctl, struct snapshot *snapshot, const struct npumem_piece *piece)
{
	const char *data = piece->data;
	bool is_open = snapshot->n_files && !strcmp(snapshot->names[snapshot->n_files - 1], piece->file);
	int code = is_open ? CTL_OK : open_file(ctl, snapshot, piece);

	if (code)
		return code;
	if (piece->offset > piece->file_bytes || piece->bytes > piece->file_bytes - piece->offset)
		return ctl_fail(ctl, "the daemon tells of bytes behind the end of %s", piece->file);
	for (size_t done = 0; done < piece->bytes;) {
		ssize_t n =
			pwrite(snapshot->file, data + done, piece->bytes - done, (off_t)(piece->offset + done));
		if (n < 0 && errno != EINTR)
			return fail(ctl, snapshot->path);
		done += n > 0 ? (size_t)n : 0;
	}
	snapshot->bytes += piece->bytes;
	return CTL_OK;
}

/* ---- all of it ---- */

static int take(struct ctl *ctl, struct snapshot *snapshot)
{
	const struct npumem_piece *piece;
	uint64_t number;

	if (npumem_snapshot(ctl->npumem, 0, &piece, &ctl->error))
		return CTL_FAILED;
	number = piece->snapshot;
	do {
		if (npumem_snapshot(ctl->npumem, number, &piece, &ctl->error))
			return CTL_FAILED;
		int code = write_piece(ctl, snapshot, piece);
		if (code)
			return code;
	} while (!piece->last);
	return close_file(ctl, snapshot);
}

static int sync_parent(struct ctl *ctl, const struct snapshot *snapshot)
{
	int parent = openat(snapshot->directory, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int code = parent < 0 || fsync(parent) ? fail(ctl, snapshot->to) : CTL_OK;

	if (parent >= 0)
		close(parent);
	return code;
}

/* rename takes the place of an empty directory, and of no other. */
static int name_it(struct ctl *ctl, struct snapshot *snapshot)
{
	if (fsync(snapshot->directory))
		return fail(ctl, snapshot->path);
	if (rename(snapshot->path, snapshot->to))
		return fail(ctl, snapshot->to);
	snapshot->n_files = 0;
	snapshot->path[0] = 0;
	return sync_parent(ctl, snapshot);
}

static void remove_rest(struct snapshot *snapshot)
{
	if (snapshot->file >= 0)
		close(snapshot->file);
	for (unsigned i = 0; i < snapshot->n_files; i++)
		unlinkat(snapshot->directory, snapshot->names[i], 0);
	if (snapshot->directory >= 0)
		close(snapshot->directory);
	if (snapshot->path[0])
		rmdir(snapshot->path);
}

static int snapshot_run(struct ctl *ctl, const struct args *args)
{
	struct snapshot snapshot = {.to = args->words[0], .directory = -1, .file = -1};
	int code = check_target(ctl, snapshot.to);

	if (code == CTL_OK)
		code = ctl_connect(ctl);
	if (code == CTL_OK)
		code = open_directory(ctl, &snapshot);
	if (code == CTL_OK)
		code = take(ctl, &snapshot);
	if (code == CTL_OK)
		code = name_it(ctl, &snapshot);
	remove_rest(&snapshot);
	if (code)
		return code;
	if (ctl->json)
		return ctl_print(ctl, json_pack("{s:s, s:I}", "directory", snapshot.to, "bytes",
						(json_int_t)snapshot.bytes));
	printf("%" PRIu64 " bytes in %s\n", snapshot.bytes, snapshot.to);
	return CTL_OK;
}

const struct command snapshot_command = {
	.least = 1,
	.most = 1,
	.run = snapshot_run,
	.notes = "for root and the daemon's uid, of a daemon with --state-dir; DIR must be new or empty, and is "
		 "there\n"
		 "only once it is whole. npumemd --state-dir DIR starts from it, as the owner of its files",
};
