/* Owns nothing beyond a call. */
#include "client/ctl/records/records.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/ctl/core/memory.h"

/* It does not exist, or is an empty directory; a symbolic link may belong to another user, and is not followed. */
static int check_target(struct ctl *ctl, const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	int code = CTL_OK;
	if (!directory && errno == ENOENT)
		return CTL_OK;
	if (!directory)
		return ctl_fail(ctl, "cannot write %.200s: %s", path, strerror(errno));
	while (code == CTL_OK && (entry = readdir(directory)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			code = ctl_invalid(ctl, "%.200s is not empty", path);
	closedir(directory);
	return code;
}

int snapshotting_take(struct ctl *ctl, const char *directory,
		      int (*next)(struct ctl *ctl, void *context, const struct npumem_piece **piece),
		      void *context, uint64_t *bytes)
{
	struct partial partial = {.directory = -1, .file = -1};
	const struct npumem_piece *piece = NULL;
	char name[PATH_MAX], prefix[PATH_MAX];
	size_t n = strlen(directory);
	while (n > 1 && directory[n - 1] == '/')
		n--;
	if ((size_t)snprintf(prefix, sizeof(prefix), "%.*s.partial-", (int)n, directory) >= sizeof(prefix))
		return ctl_invalid(ctl, "the name of the directory is too long");
	snprintf(name, sizeof(name), "%.*s", (int)n, directory);
	int code = check_target(ctl, name);
	if (!code)
		code = partial_begin(ctl, prefix, &partial);
	while (!code && !(piece && piece->last)) {
		code = next(ctl, context, &piece);
		if (!code)
			code = partial_write(ctl, &partial, piece);
	}
	if (!code)
		code = partial_close(ctl, &partial);
	if (!code)
		code = partial_name(ctl, &partial, name);
	*bytes = partial.bytes;
	partial_end(&partial);
	return code;
}

/* ---- a copy ---- */

enum { COPY_BYTES = 1 << 20 };

static bool is_zero(const char *bytes, size_t n)
{
	return !n || (!bytes[0] && !memcmp(bytes, bytes + 1, n - 1));
}

/* What is zero takes no room, as in the snapshot. */
static int copy_file(struct ctl *ctl, const char *name, int fd, char *buffer, struct partial *to)
{
	struct stat stat;
	struct npumem_piece piece = {.file = name, .data = buffer};
	if (fstat(fd, &stat) || !S_ISREG(stat.st_mode))
		return ctl_invalid(ctl, "%.100s is not a file of a snapshot", name);
	piece.file_bytes = (uint64_t)stat.st_size;
	do {
		ssize_t n = pread(fd, buffer, COPY_BYTES, (off_t)piece.offset);
		if (n < 0)
			return ctl_fail(ctl, "cannot read %.100s: %s", name, strerror(errno));
		bool is_end = !n || piece.offset + (uint64_t)n >= piece.file_bytes;
		piece.bytes = is_zero(buffer, (size_t)n) ? 0 : (size_t)n;
		int code = partial_write(ctl, to, &piece);
		if (code || is_end)
			return code;
		piece.offset += (uint64_t)n;
	} while (true);
}

static int copy_files(struct ctl *ctl, DIR *directory, char *buffer, struct partial *to)
{
	const struct dirent *entry;
	int code = CTL_OK;
	while (code == CTL_OK && (entry = readdir(directory))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		int fd = openat(dirfd(directory), entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			return ctl_fail(ctl, "cannot read %.100s: %s", entry->d_name, strerror(errno));
		code = copy_file(ctl, entry->d_name, fd, buffer, to);
		close(fd);
	}
	return code ? code : partial_close(ctl, to);
}

int snapshotting_copy(struct ctl *ctl, const char *directory, struct partial *to)
{
	const char *temporary = getenv("TMPDIR");
	char prefix[PATH_MAX];
	*to = (struct partial){.directory = -1, .file = -1};
	if ((size_t)snprintf(prefix, sizeof(prefix), "%s/npumem-replay-",
			     temporary && *temporary ? temporary : "/tmp") >= sizeof(prefix))
		return ctl_invalid(ctl, "TMPDIR is too long");
	int code = partial_begin(ctl, prefix, to);
	DIR *from = code ? NULL : opendir(directory);
	if (!code && !from)
		code = ctl_fail(ctl, "cannot read %.200s: %s", directory, strerror(errno));
	if (!code)
		code = copy_files(ctl, from, memory_new(COPY_BYTES, 1), to);
	if (from)
		closedir(from);
	return code;
}
