/* Invariant: while files are moved the folder has the file `moving`, so that the next process goes on; a folder
 * without it is whole and never touched again. While a folder is prepared, it is aside-new and has no state
 * yet. */
#include "daemon/store/files/aside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "daemon/store/files/calls.h"
#include "daemon/store/image/manifest.h"

#define NEW ASIDE_PREFIX "new"
#define MOVING "moving"

enum { COPY_BYTES = 1 << 20, SAME_SECOND_MAX = 100 };

static int fail(const struct opening *opening, int status)
{
	char line[STORE_ERROR_BYTES];

	snprintf(line, sizeof(line), "%s", opening->error);
	snprintf(opening->error, STORE_ERROR_BYTES, "%.400s; it cannot be set aside: %s", line, strerror(-status));
	return status;
}

static bool is_aside(const char *name)
{
	return !strncmp(name, ASIDE_PREFIX, sizeof(ASIDE_PREFIX) - 1) && strcmp(name, NEW) != 0;
}

static bool has(int directory, const char *name)
{
	return !faccessat(directory, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

/* ---- the folder ---- */

static int write_file(const struct opening *opening, int folder, const char *name, const char *text)
{
	const struct store_hooks *hooks = opening->options->hooks;
	int fd = calls_open(hooks, folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
	int status = fd < 0 ? fd : calls_write(hooks, fd, text, strlen(text), 0);

	if (!status)
		status = calls_sync(hooks, fd);
	if (fd >= 0)
		close(fd);
	return status;
}

/* Makes aside-new, with its note. Returns its descriptor or -errno. */
static int make_folder(const struct opening *opening, int directory, const char *now, bool is_moved)
{
	const struct store_hooks *hooks = opening->options->hooks;
	char note[2 * STORE_ERROR_BYTES];
	int folder, status = calls_make_directory(hooks, directory, NEW);

	if (status)
		return status;
	folder = calls_open(hooks, directory, NEW, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	if (folder < 0)
		return folder;
	snprintf(note, sizeof(note), "%s\n%s\n%s\n", now, verdict_name(opening->report->verdict), opening->error);
	status = write_file(opening, folder, ASIDE_WHY, note);
	if (!status && is_moved)
		status = write_file(opening, folder, MOVING, "");
	if (!status)
		return folder;
	close(folder);
	return status;
}

/* Gives aside-new its name. Two of the same second differ by a number. */
static int name_folder(const struct opening *opening, int directory, const char *now, char *name)
{
	const struct store_hooks *hooks = opening->options->hooks;
	int status = -EEXIST;

	for (unsigned i = 1; i < SAME_SECOND_MAX && (status == -EEXIST || status == -ENOTEMPTY); i++) {
		snprintf(name, ASIDE_NAME_BYTES, i > 1 ? ASIDE_PREFIX "%.20s-%u" : ASIDE_PREFIX "%.20s", now, i);
		status = calls_rename(hooks, directory, NEW, directory, name);
	}
	return status ? status : calls_sync(hooks, directory);
}

/* ---- files that are moved ---- */

static int move_one(const struct opening *opening, int folder, const char *name)
{
	int status;

	if (has(folder, name) || !has(opening->directory, name))
		return 0;
	status = calls_rename(opening->options->hooks, opening->directory, name, folder, name);
	return status == -ENOENT ? 0 : status;
}

/* The journal last: until then the lock keeps other processes out. */
static int move_files(const struct opening *opening, int folder)
{
	const struct store_hooks *hooks = opening->options->hooks;
	int status = move_one(opening, folder, MANIFEST_NAME);

	for (unsigned file = FORMAT_FILES; !status && file-- > 0;)
		status = move_one(opening, folder, opening_names[file]);
	if (!status)
		status = calls_sync(hooks, folder);
	if (!status)
		status = calls_sync(hooks, opening->directory);
	if (!status)
		status = calls_remove(hooks, folder, MOVING);
	return status;
}

int aside_finish(const struct opening *opening, bool *is_moved)
{
	int fd = openat(opening->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), status = 0;
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	*is_moved = false;
	if (!entries && fd >= 0)
		close(fd);
	while (entries && !status && (entry = readdir(entries))) {
		int folder = is_aside(entry->d_name)
				     ? openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
				     : -1;
		if (folder >= 0 && has(folder, MOVING)) {
			*is_moved = !has(folder, opening_names[FORMAT_JOURNAL]);
			status = move_files(opening, folder);
		}
		if (folder >= 0)
			close(folder);
	}
	if (entries)
		closedir(entries);
	return status ? opening_refuse(opening, FORMAT_JOURNAL, status,
				       "a state that was being set aside cannot be: %s", strerror(-status))
		      : 0;
}

/* ---- files that are copied ---- */

static int copy_file(const struct opening *opening, enum format_file file, int folder, char *buffer)
{
	const struct store_hooks *hooks = opening->options->hooks;
	uint64_t end = opening->bytes[file];
	int from = opening->store->fds[file], status;
	int to = calls_open(hooks, folder, opening_names[file], O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);

	if (to < 0)
		return to;
	status = calls_truncate(hooks, to, end);
	for (uint64_t off = calls_find_data(from, 0, end); !status && off < end;
	     off = calls_find_data(from, off, end)) {
		size_t bytes = end - off < COPY_BYTES ? (size_t)(end - off) : COPY_BYTES;
		int64_t n = calls_read(hooks, from, buffer, bytes, off);
		status = n < 0 ? (int)n : calls_write(hooks, to, buffer, bytes, off);
		off += bytes;
	}
	if (!status)
		status = calls_sync(hooks, to);
	close(to);
	return status;
}

static int copy_files(const struct opening *opening, int folder)
{
	char *buffer = heap_alloc(opening->options->heap, COPY_BYTES);
	int status = buffer ? 0 : -ENOMEM;

	for (enum format_file file = FORMAT_JOURNAL; !status && file < FORMAT_FILES; file++)
		status = copy_file(opening, file, folder, buffer);
	heap_free(opening->options->heap, buffer);
	return status ? status : calls_sync(opening->options->hooks, folder);
}

static int empty_files(const struct opening *opening)
{
	int status = 0;

	for (unsigned file = FORMAT_FILES; !status && file-- > 0;)
		status = calls_truncate(opening->options->hooks, opening->store->fds[file], 0);
	return status;
}

/* ---- both ---- */

static int set_in(const struct opening *opening, int directory, bool is_moved, char *name)
{
	char now[32];
	time_t seconds = time(NULL);
	struct tm parts;
	int folder, status;

	strftime(now, sizeof(now), "%Y%m%dT%H%M%SZ", gmtime_r(&seconds, &parts));
	folder = make_folder(opening, directory, now, is_moved);
	if (folder < 0)
		return folder;
	status = is_moved ? 0 : copy_files(opening, folder);
	if (!status)
		status = name_folder(opening, directory, now, name);
	if (!status)
		status = is_moved ? move_files(opening, folder) : empty_files(opening);
	close(folder);
	return status;
}

int aside_set(const struct opening *opening)
{
	const struct store_options *options = opening->options;
	const char *path = options->directory ? options->directory : options->aside_directory;
	char name[ASIDE_NAME_BYTES] = "", line[STORE_ERROR_BYTES];
	int n, status,
		directory = path ? calls_open(options->hooks, AT_FDCWD, path, O_RDONLY | O_DIRECTORY) : -ENOTDIR;

	if (directory < 0)
		return fail(opening, directory);
	n = aside_each(directory, NULL, NULL);
	status = n < 0 ? n : 0;
	if (!status && (unsigned)n >= options->aside_most) {
		snprintf(line, sizeof(line), "%s", opening->error);
		snprintf(
			opening->error, STORE_ERROR_BYTES,
			"%.250s; %d states are set aside in %.140s already, and --set-aside allows %u: remove one",
			line, n, path, options->aside_most);
		status = verdict_status(opening->report->verdict);
	} else {
		status = status ? status : set_in(opening, directory, options->directory != NULL, name);
		if (status)
			fail(opening, status);
	}
	close(directory);
	if (!status)
		snprintf(opening->report->aside, STORE_ERROR_BYTES,
			 "set aside in %.140s/%s, and a new state is begun: %.300s", path, name, opening->error);
	return status;
}

/* ---- listing ---- */

static void read_note(int directory, const char *name, struct aside_note *note)
{
	char path[512], text[2 * STORE_ERROR_BYTES] = "", *rest = text, *line;
	int64_t n;
	int fd;

	*note = (struct aside_note){0};
	snprintf(path, sizeof(path), "%.400s/" ASIDE_WHY, name);
	fd = openat(directory, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	n = fd < 0 ? -1 : calls_read(NULL, fd, text, sizeof(text) - 1, 0);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return;
	line = strsep(&rest, "\n");
	snprintf(note->time, sizeof(note->time), "%.31s", line);
	line = rest ? strsep(&rest, "\n") : NULL;
	snprintf(note->verdict, sizeof(note->verdict), "%.31s", line ? line : "");
	line = rest ? strsep(&rest, "\n") : NULL;
	snprintf(note->line, sizeof(note->line), "%.500s", line ? line : "");
}

int aside_each(int directory, void (*each)(void *ctx, const char *name, const struct aside_note *note), void *ctx)
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = 0;
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	struct aside_note note;

	if (!entries) {
		int status = -errno;

		if (fd >= 0)
			close(fd);
		return status;
	}
	while ((entry = readdir(entries))) {
		if (!is_aside(entry->d_name))
			continue;
		n++;
		if (!each)
			continue;
		read_note(directory, entry->d_name, &note);
		each(ctx, entry->d_name, &note);
	}
	closedir(entries);
	return n;
}
