/* Invariant: what the handler of signals removes is ours alone: a name is noted before its file is made, and while
 * the directory gets its name the signals wait. */
#include "client/ctl/records/records.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_SIGNALS = sizeof(signals) / sizeof(signals[0]) };

static struct partial *under_way;
static struct sigaction before[N_SIGNALS];

static int fail(struct ctl *ctl, const char *path)
{
	return ctl_fail(ctl, "cannot write %.200s: %s", path, strerror(errno));
}

/* ---- its end ---- */

/* Calls nothing that a handler of signals may not. */
static void remove_all(const struct partial *partial)
{
	for (unsigned i = 0; i < partial->n_files; i++)
		unlinkat(partial->directory, partial->names[i], 0);
	if (partial->path[0])
		rmdir(partial->path);
}

static void on_signal(int number)
{
	if (under_way)
		remove_all(under_way);
	/* It was reset, and comes when this has returned. */
	raise(number);
}

static void catch_signals(struct partial *partial)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
	under_way = partial;
	for (unsigned i = 0; i < N_SIGNALS; i++) {
		sigaction(signals[i], NULL, &before[i]);
		if (before[i].sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
	}
}

void partial_end(struct partial *partial)
{
	if (partial->file >= 0)
		close(partial->file);
	remove_all(partial);
	if (partial->directory >= 0)
		close(partial->directory);
	for (unsigned i = 0; under_way == partial && i < N_SIGNALS; i++)
		sigaction(signals[i], &before[i], NULL);
	under_way = NULL;
	*partial = (struct partial){.directory = -1, .file = -1};
}

/* ---- its beginning ---- */

/* The process that writes one holds its lock. Another user may have made a directory of any name. */
static bool is_left(int parent, const char *name)
{
	struct stat stat;
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool is_own = fd >= 0 && !fstat(fd, &stat) && stat.st_uid == geteuid();
	bool is_left = is_own && !flock(fd, LOCK_EX | LOCK_NB);
	if (fd >= 0)
		close(fd);
	return is_left;
}

/* As the message of a refusal it has nothing that a terminal takes for a command. */
static void warn_left(const char *prefix, int n, const char *name)
{
	struct npumem_error text;
	npumem_error_clear(&text);
	npumem_error_set(&text, NPUMEM_INVALID,
			 "%.*s%.200s was left by an npumemctl that was killed, and can be removed", n, prefix,
			 name);
	fprintf(stderr, "npumemctl: %s\n", text.message);
}

static void warn_of_left(const char *prefix)
{
	const char *slash = strrchr(prefix, '/'), *name = slash ? slash + 1 : prefix;
	char parent[PATH_MAX];
	const struct dirent *entry;
	snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - prefix) + 1 : 1, slash ? prefix : ".");
	DIR *directory = opendir(parent);
	while (directory && (entry = readdir(directory)))
		if (!strncmp(entry->d_name, name, strlen(name)) && is_left(dirfd(directory), entry->d_name))
			warn_left(prefix, slash ? (int)(slash - prefix) + 1 : 0, entry->d_name);
	if (directory)
		closedir(directory);
}

int partial_begin(struct ctl *ctl, const char *prefix, struct partial *partial)
{
	*partial = (struct partial){.directory = -1, .file = -1};
	if (strlen(prefix) + sizeof("XXXXXX") > sizeof(partial->path))
		return ctl_invalid(ctl, "the name of the directory is too long");
	warn_of_left(prefix);
	snprintf(partial->path, sizeof(partial->path), "%sXXXXXX", prefix);
	catch_signals(partial);
	if (!mkdtemp(partial->path)) {
		partial->path[0] = 0;
		return fail(ctl, prefix);
	}
	partial->directory = open(partial->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return partial->directory < 0 || flock(partial->directory, LOCK_EX | LOCK_NB) ? fail(ctl, partial->path)
										      : CTL_OK;
}

/* ---- files ---- */

int partial_close(struct ctl *ctl, struct partial *partial)
{
	int fd = partial->file;
	partial->file = -1;
	if (fd < 0)
		return CTL_OK;
	if (fsync(fd) == 0)
		return close(fd) ? fail(ctl, partial->path) : CTL_OK;
	int code = fail(ctl, partial->path);
	close(fd);
	return code;
}

static bool is_name(const char *name)
{
	size_t n = 0;
	while (islower((unsigned char)name[n]))
		n++;
	return n && n <= NAME_MAX && !name[n];
}

static int open_file(struct ctl *ctl, struct partial *partial, const struct npumem_piece *piece)
{
	int code = partial_close(ctl, partial);
	if (code)
		return code;
	if (!is_name(piece->file) || partial->n_files == PARTIAL_FILES_MAX || piece->file_bytes > INT64_MAX)
		return ctl_fail(ctl, "the daemon tells of a file that no snapshot has");
	strcpy(partial->names[partial->n_files], piece->file);
	partial->n_files++;
	partial->file = openat(partial->directory, piece->file,
			       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (partial->file < 0)
		return fail(ctl, partial->path);
	return ftruncate(partial->file, (off_t)piece->file_bytes) ? fail(ctl, partial->path) : CTL_OK;
}

int partial_write(struct ctl *ctl, struct partial *partial, const struct npumem_piece *piece)
{
	const char *data = piece->data;
	bool is_open = partial->n_files && !strcmp(partial->names[partial->n_files - 1], piece->file);
	int code = is_open ? CTL_OK : open_file(ctl, partial, piece);
	if (code)
		return code;
	if (piece->offset > piece->file_bytes || piece->bytes > piece->file_bytes - piece->offset)
		return ctl_fail(ctl, "the daemon tells of bytes behind the end of %s", piece->file);
	for (size_t done = 0; done < piece->bytes;) {
		ssize_t n = pwrite(partial->file, data + done, piece->bytes - done, (off_t)(piece->offset + done));
		if (n < 0 && errno != EINTR)
			return fail(ctl, partial->path);
		done += n > 0 ? (size_t)n : 0;
	}
	partial->bytes += piece->bytes;
	return CTL_OK;
}

/* ---- its name ---- */

static int sync_parent(struct ctl *ctl, const struct partial *partial, const char *name)
{
	int parent = openat(partial->directory, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int code = parent < 0 || fsync(parent) ? fail(ctl, name) : CTL_OK;
	if (parent >= 0)
		close(parent);
	return code;
}

/* rename takes the place of an empty directory, and of no other. */
int partial_name(struct ctl *ctl, struct partial *partial, const char *name)
{
	sigset_t set, old;
	if (fsync(partial->directory))
		return fail(ctl, partial->path);
	sigemptyset(&set);
	for (unsigned i = 0; i < N_SIGNALS; i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, &old);
	int code = rename(partial->path, name) ? fail(ctl, name) : CTL_OK;
	if (!code) {
		partial->n_files = 0;
		partial->path[0] = 0;
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	return code ? code : sync_parent(ctl, partial, name);
}
