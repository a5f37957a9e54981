/* Compares the uid of the socket's other end with those that the caller trusts; folders.c judges the path. */
#define _GNU_SOURCE /* struct ucred, secure_getenv */
#include "client/lib/addresses/address.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

bool peer_uid(int fd, uid_t *uid)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
		return false;
	*uid = peer.uid;
	return true;
}

/* 0; INVALID. */
static int given_uid(bool *is_given, uid_t *uid, struct npumem_error *error)
{
	const char *text = secure_getenv("NPUMEM_SERVER_UID");
	char *end;
	*is_given = text && *text;
	if (!*is_given)
		return 0;
	errno = 0;
	unsigned long number = strtoul(text, &end, 10);
	*uid = (uid_t)number;
	if (*text >= '0' && *text <= '9' && !*end && !errno && *uid == number)
		return 0;
	return npumem_error_set(error, NPUMEM_INVALID, "NPUMEM_SERVER_UID=\"%.40s\" is not a uid", text);
}

static int refuse(const char *path, uid_t uid, const char *folder, struct npumem_error *error)
{
	npumem_error_set(
		error, NPUMEM_PERMISSION_DENIED,
		"the daemon at %s is of uid %u, and others can change %.200s: set NPUMEM_SERVER_UID=%u if "
		"that daemon is meant",
		path, (unsigned)uid, folder, (unsigned)uid);
	npumem_error_number(error, "uid", (int64_t)uid);
	return NPUMEM_PERMISSION_DENIED;
}

int peer_check(const char *path, int fd, struct npumem_error *error)
{
	char folder[PATH_MAX];
	uid_t uid, given = 0;
	bool is_given;
	int status = given_uid(&is_given, &given, error);
	if (status)
		return status;
	if (!peer_uid(fd, &uid))
		return npumem_error_set(error, NPUMEM_UNAVAILABLE, "whose daemon is at %s cannot be known: %s",
					path, strerror(errno));
	if (!uid || uid == geteuid() || (is_given && uid == given))
		return 0;
	status = folders_check(path, uid, folder);
	if (status < 0)
		return npumem_error_set(error, NPUMEM_UNAVAILABLE, "cannot reach a daemon at %s: %s", path,
					strerror(-status));
	return status ? refuse(path, uid, folder, error) : 0;
}
