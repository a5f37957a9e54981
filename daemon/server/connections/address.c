/* A socket file is taken by a lock beside it, since connect() alone cannot tell two daemons apart that start at
 * once. The lock file is removed under its own lock; a daemon that opened it just before finds another inode and
 * tries again. Invariant: the socket file exists only while the lock is held, unless the file is systemd's. */
#include "daemon/server/connections/address.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int fail(char *error, const char *what, const char *path)
{
	int status = -errno;

	snprintf(error, ADDRESS_ERROR_BYTES, "cannot %s %.120s: %s", what, path, strerror(-status));
	return status;
}

static void lock_path(const char *path, char lock[OPTIONS_PATH_BYTES + 8])
{
	snprintf(lock, OPTIONS_PATH_BYTES + 8, "%s.lock", path);
}

static int make_directory(const char *path, char *error)
{
	char directory[OPTIONS_PATH_BYTES];
	char *slash;

	snprintf(directory, sizeof(directory), "%s", path);
	slash = strrchr(directory, '/');
	if (!slash || slash == directory)
		return 0;
	*slash = 0;
	if (mkdir(directory, 0755) && errno != EEXIST)
		return fail(error, "make directory", directory);
	return 0;
}

static int in_use(char *error, const char *path)
{
	snprintf(error, ADDRESS_ERROR_BYTES, "another daemon is on %.120s", path);
	return -EADDRINUSE;
}

static bool is_same_file(int fd, const char *path)
{
	struct stat ours, theirs;

	return fstat(fd, &ours) == 0 && stat(path, &theirs) == 0 && ours.st_dev == theirs.st_dev &&
	       ours.st_ino == theirs.st_ino;
}

static int take_lock(const char *path, int *fd, char *error)
{
	char lock[OPTIONS_PATH_BYTES + 8];

	lock_path(path, lock);
	for (;;) {
		*fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (*fd < 0)
			return fail(error, "open", lock);
		if (flock(*fd, LOCK_EX | LOCK_NB)) {
			int status = errno == EWOULDBLOCK ? in_use(error, path) : fail(error, "lock", lock);

			close(*fd);
			return status;
		}
		if (is_same_file(*fd, lock))
			return 0;
		close(*fd);
	}
}

/* The lock is held. A socket without a listener was left behind by a killed daemon; one with a listener belongs to
 * a program that does not take the lock. */
static int remove_stale(const struct sockaddr_un *name, char *error)
{
	struct stat status;
	int fd, result;

	if (lstat(name->sun_path, &status))
		return errno == ENOENT ? 0 : fail(error, "look at", name->sun_path);
	if (!S_ISSOCK(status.st_mode)) {
		snprintf(error, ADDRESS_ERROR_BYTES, "%.120s exists and is not a socket", name->sun_path);
		return -EEXIST;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fail(error, "make a socket for", name->sun_path);
	result = connect(fd, (const struct sockaddr *)name, sizeof(*name)) ? errno : 0;
	close(fd);
	if (result != ECONNREFUSED && result != ENOENT)
		return in_use(error, name->sun_path);
	if (unlink(name->sun_path) && errno != ENOENT)
		return fail(error, "remove", name->sun_path);
	return 0;
}

/* A name, or a number. */
static int find_group(const char *group, gid_t *gid, char *error)
{
	const struct group *entry = getgrnam(group);
	char *end;
	unsigned long number = strtoul(group, &end, 10);

	if (!entry && (*end || number >= UINT32_MAX)) {
		snprintf(error, ADDRESS_ERROR_BYTES, "--users %.64s: there is no such group", group);
		return -ENOENT;
	}
	*gid = entry ? entry->gr_gid : (gid_t)number;
	return 0;
}

/* Before this, the file has another group, and the members of this one have no rights. */
static int give_to_group(const struct sockaddr_un *name, mode_t mode, const char *group, char *error)
{
	gid_t gid = 0;
	int status = find_group(group, &gid, error);

	if (status)
		return status;
	if (lchown(name->sun_path, (uid_t)-1, gid))
		return fail(error, "give to the group of --users", name->sun_path);
	return chmod(name->sun_path, mode) ? fail(error, "set the mode of", name->sun_path) : 0;
}

static int bind_and_listen(struct address *address, const struct sockaddr_un *name, mode_t mode, const char *group,
			   char *error)
{
	mode_t before, first = group ? mode & S_IRWXU : mode;
	int status;
	int failed;

	address->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (address->fd < 0)
		return fail(error, "make a socket for", name->sun_path);
	/* By umask and not by chmod, so that there is no moment with other rights. */
	before = umask(0777 & ~first);
	failed = bind(address->fd, (const struct sockaddr *)name, sizeof(*name));
	umask(before);
	if (failed)
		return fail(error, "bind", name->sun_path);
	status = group ? give_to_group(name, mode, group, error) : 0;
	if (!status && listen(address->fd, SOMAXCONN))
		status = fail(error, "listen on", name->sun_path);
	if (status)
		unlink(name->sun_path);
	return status;
}

static void unlock(struct address *address)
{
	char lock[OPTIONS_PATH_BYTES + 8];

	lock_path(address->path, lock);
	unlink(lock);
	close(address->lock_fd);
	address->lock_fd = -1;
}

int address_open(struct address *address, const char *path, mode_t mode, const char *group,
		 char error[ADDRESS_ERROR_BYTES])
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int status;

	*address = (struct address){.fd = -1, .lock_fd = -1};
	snprintf(address->path, sizeof(address->path), "%s", path);
	snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
	status = make_directory(path, error);
	if (!status)
		status = take_lock(path, &address->lock_fd, error);
	if (status)
		return status;
	status = remove_stale(&name, error);
	if (!status)
		status = bind_and_listen(address, &name, mode, group, error);
	if (!status)
		return 0;
	if (address->fd >= 0)
		close(address->fd);
	address->fd = -1;
	unlock(address);
	return status;
}

void address_adopt(struct address *address, int fd)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	socklen_t bytes = sizeof(name);
	int length;

	*address = (struct address){.fd = fd, .lock_fd = -1};
	/* A path of 108 bytes has no zero at its end; an abstract name has one at its beginning. */
	if (getsockname(fd, (struct sockaddr *)&name, &bytes) || bytes <= offsetof(struct sockaddr_un, sun_path))
		return;
	length = (int)(bytes - offsetof(struct sockaddr_un, sun_path));
	if (!name.sun_path[0])
		name.sun_path[0] = '@';
	snprintf(address->path, sizeof(address->path), "%.*s", length, name.sun_path);
}

int address_release(struct address *address)
{
	int fd = address->fd;

	if (fd < 0)
		return -1;
	if (address->lock_fd >= 0)
		unlink(address->path);
	address->fd = -1;
	if (address->lock_fd >= 0)
		unlock(address);
	return fd;
}

void address_close(struct address *address)
{
	int fd = address_release(address);

	if (fd >= 0)
		close(fd);
}
