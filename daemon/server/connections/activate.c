/* Descriptors that systemd passes at the start: a socket, and those that it kept for the daemon (notify_keep).
 * Checks that the socket is one to accept from; address.c owns the socket file. */
#include "daemon/server/connections/activate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST_FD = 3 };

/* 0 if it is no number: then nothing was passed. */
static long number_of(const char *variable)
{
	const char *text = getenv(variable);
	char *end;
	long number;

	if (!text || !*text)
		return 0;
	errno = 0;
	number = strtol(text, &end, 10);
	return errno || *end || number < 0 ? 0 : number;
}

static bool option_is(int fd, int option, int expected)
{
	int value;
	socklen_t bytes = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, option, &value, &bytes) == 0 && value == expected;
}

bool activate_listens(int fd)
{
	return option_is(fd, SO_DOMAIN, AF_UNIX) && option_is(fd, SO_TYPE, SOCK_STREAM) &&
	       option_is(fd, SO_ACCEPTCONN, 1);
}

int activate_prepare(int fd, char error[ADDRESS_ERROR_BYTES])
{
	int flags = fcntl(fd, F_GETFL), status;

	if (flags >= 0 && !fcntl(fd, F_SETFL, flags | O_NONBLOCK) && !fcntl(fd, F_SETFD, FD_CLOEXEC))
		return 0;
	status = -errno;
	snprintf(error, ADDRESS_ERROR_BYTES, "cannot use the socket that was passed: %s", strerror(-status));
	return status;
}

/* The number of descriptors that were passed to this process; the variables may be those of a parent. */
static long n_passed(void)
{
	return number_of("LISTEN_PID") == (long)getpid() ? number_of("LISTEN_FDS") : 0;
}

/* The next of the names, which are separated by colons, and the start of the one behind it; empty: there are no
 * more. */
static size_t next_name(const char **names, const char **name)
{
	size_t length = strcspn(*names, ":");

	*name = *names;
	*names += length + ((*names)[length] == ':');
	return length;
}

static bool is_kept(const char *name, size_t length)
{
	return length >= strlen(ACTIVATE_KEPT) && memcmp(name, ACTIVATE_KEPT, strlen(ACTIVATE_KEPT)) == 0;
}

static const char *names_passed(void)
{
	const char *names = getenv("LISTEN_FDNAMES");

	return names ? names : "";
}

int activate_kept(const char *wanted)
{
	const char *names = names_passed(), *name;
	long n = n_passed();

	for (long i = 0; i < n; i++) {
		size_t length = next_name(&names, &name);

		if (length == strlen(wanted) && memcmp(name, wanted, length) == 0)
			return FIRST_FD + (int)i;
	}
	return -1;
}

int activate_take(int *fd, char error[ADDRESS_ERROR_BYTES])
{
	const char *names = names_passed(), *name;
	long n = n_passed(), n_sockets = 0;

	*fd = -1;
	for (long i = 0; i < n; i++) {
		size_t length = next_name(&names, &name);

		if (is_kept(name, length))
			continue;
		if (!n_sockets++)
			*fd = FIRST_FD + (int)i;
	}
	if (!n_sockets)
		return 0;
	if (n_sockets != 1) {
		snprintf(error, ADDRESS_ERROR_BYTES, "%ld sockets were passed (LISTEN_FDS): one can be served",
			 n_sockets);
		return -EINVAL;
	}
	if (!activate_listens(*fd)) {
		snprintf(error, ADDRESS_ERROR_BYTES,
			 "the socket that was passed (LISTEN_FDS) is not a listening "
			 "Unix stream socket");
		return -EINVAL;
	}
	return activate_prepare(*fd, error);
}
