/* Every path is walked a folder at a time from the descriptor of the first one, and no step follows a link.
 * Invariant: no file is opened by a path that the kernel resolves as a whole. */
#define _GNU_SOURCE /* O_PATH */
#include "client/ctl/core/network/network.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/ctl/core/memory.h"

enum { FOLDER_FLAGS = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

bool outputs_leaves(const char *file)
{
	if (*file == '/')
		return true;
	for (; *file; file += strspn(file, "/")) {
		size_t bytes = strcspn(file, "/");
		if (bytes == 2 && !strncmp(file, "..", 2))
			return true;
		file += bytes;
	}
	return false;
}

static int wrong(const struct outputs *outputs, const char *file, const char *why, struct npumem_error *error)
{
	return npumem_error_set(error, NPUMEM_INVALID, "%.150s/%.150s: %s", outputs->path, file, why);
}

/* The folder `name` in `folder`; -1 with errno. */
static int enter(int folder, const char *name, bool make)
{
	int fd = openat(folder, name, FOLDER_FLAGS);
	if (fd >= 0 || errno != ENOENT || !make || (mkdirat(folder, name, 0777) && errno != EEXIST))
		return fd;
	return openat(folder, name, FOLDER_FLAGS);
}

/* The folder that the last name of `path` is in, for the caller to close; *last is that name, in `path`, which is
 * changed. -1 with errno. */
static int walk(int folder, char *path, bool make, const char **last)
{
	char *rest, *name = strtok_r(path, "/", &rest), *next;
	int fd = dup(folder);
	while (fd >= 0 && name && (next = strtok_r(NULL, "/", &rest))) {
		int inner = enter(fd, name, make);
		int problem = errno;
		close(fd);
		errno = problem;
		fd = inner;
		name = next;
	}
	*last = name ? name : ".";
	return fd;
}

static const char *no_folder(void)
{
	return errno == ENOTDIR || errno == ELOOP ? "a folder on the way is a symbolic link, or no folder"
						  : strerror(errno);
}

static int check(const struct outputs *outputs, const char *file, bool make, struct npumem_error *error)
{
	const char *last;
	struct stat there;
	int status = 0, folder = walk(outputs->folder, memory_text("%s", file), make, &last);
	if (folder < 0 && (make || errno != ENOENT))
		status = wrong(outputs, file, no_folder(), error);
	else if (folder >= 0 && !fstatat(folder, last, &there, AT_SYMLINK_NOFOLLOW) && !S_ISREG(there.st_mode))
		status = wrong(outputs, file, "it is there, and no regular file", error);
	if (folder >= 0)
		close(folder);
	return status;
}

/* Of `path` links are followed: it is the user's own word. */
static int open_folder(struct outputs *outputs, const char *path, bool make, struct npumem_error *error)
{
	*outputs = (struct outputs){.path = path, .folder = -1};
	outputs->made = make && !mkdir(path, 0777);
	if (make && !outputs->made && errno != EEXIST)
		return npumem_error_set(error, NPUMEM_INVALID, "%.200s: %s", path, strerror(errno));
	outputs->folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (outputs->folder < 0 && (make || errno != ENOENT))
		return npumem_error_set(error, NPUMEM_INVALID, "%.200s: %s", path, strerror(errno));
	return 0;
}

int outputs_open(struct outputs *outputs, const char *path, const struct network *network, bool make,
		 struct npumem_error *error)
{
	struct npumem_error why = {.status = 0};
	int status = open_folder(outputs, path, make, error);
	for (size_t i = 0; i < network->n_operations && !status && outputs->folder >= 0; i++) {
		const struct network_operation *operation = &network->operations[i];
		if (operation->kind == NETWORK_READ && check(outputs, operation->file, make, &why))
			status = network_about(network, operation, &why, error);
	}
	if (status)
		outputs_close(outputs);
	return status;
}

int outputs_create(const struct outputs *outputs, const char *file, bool append, FILE **created,
		   struct npumem_error *error)
{
	const char *last, *why = NULL;
	int fd = -1, folder = walk(outputs->folder, memory_text("%s", file), false, &last);
	if (folder < 0)
		why = no_folder();
	/* Not to wait where it has become a pipe. */
	else if ((fd = openat(folder, last,
			      O_WRONLY | O_CREAT | (append ? O_APPEND : O_TRUNC) | O_NOFOLLOW | O_NONBLOCK |
				      O_CLOEXEC,
			      0666)) < 0)
		why = errno == ELOOP ? "it is a symbolic link" : strerror(errno);
	else if (!(*created = fdopen(fd, append ? "ab" : "wb")))
		why = strerror(errno);
	if (folder >= 0)
		close(folder);
	if (why && fd >= 0)
		close(fd);
	return why ? wrong(outputs, file, why, error) : 0;
}

void outputs_close(struct outputs *outputs)
{
	if (outputs->folder >= 0)
		close(outputs->folder);
	outputs->folder = -1;
	if (outputs->made)
		rmdir(outputs->path); /* which fails where something is in it */
}
