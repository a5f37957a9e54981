/* Socket activation. Says whether a socket was passed and that it is one to accept from; whose file it is, and
 * that it stays when the daemon goes, is address.c's. */
#include "daemon/server/connections/activate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST_FD = 3 };

/* 0 for what is no number: nothing is passed under such a name. */
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

int activate_take(int *fd, char error[ADDRESS_ERROR_BYTES])
{
	long n = number_of("LISTEN_FDS");

	*fd = -1;
	/* The variables may have been meant for a parent. */
	if (n == 0 || number_of("LISTEN_PID") != (long)getpid())
		return 0;
	if (n != 1) {
		snprintf(error, ADDRESS_ERROR_BYTES, "%ld sockets were passed (LISTEN_FDS): one can be served", n);
		return -EINVAL;
	}
	if (!activate_listens(FIRST_FD)) {
		snprintf(error, ADDRESS_ERROR_BYTES,
			 "the socket that was passed (LISTEN_FDS) is not a listening "
			 "Unix stream socket");
		return -EINVAL;
	}
	*fd = FIRST_FD;
	return activate_prepare(FIRST_FD, error);
}
