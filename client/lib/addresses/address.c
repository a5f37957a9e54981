/* Address forms, and connecting to a socket's path. Does not start daemons: spawn.c does; nor
 * ssh: remote.c does. */
#define _GNU_SOURCE /* memrchr, secure_getenv */
#include "client/lib/addresses/address.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/time.h>
#include <unistd.h>

#include "client/lib/connection/clock.h"

#define ADDRESS_SYSTEM_PATH "/run/npumem/npumem.sock"

_Static_assert(sizeof(((struct sockaddr_un *)0)->sun_path) == ADDRESS_PATH_BYTES, "as the kernel has it");

static int address_path(const char *directory, const char *name, struct address *address,
			struct npumem_error *error)
{
	int n = snprintf(address->path, sizeof(address->path), "%s%s", directory, name);
	if (n == 0)
		return npumem_error_set(error, NPUMEM_INVALID, "the address of the daemon is empty");
	if (n < 0 || (size_t)n >= sizeof(address->path))
		return npumem_error_set(error, NPUMEM_INVALID,
					"a socket path of %d bytes is longer than the %d that a socket can have",
					n, ADDRESS_PATH_BYTES - 1);
	return 0;
}

/* What no shell, no ssh and nothing that ssh's configuration puts a host into can take for more than a name. */
static bool is_host(const char *host, size_t n)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:@+[]";
	const char *at = memrchr(host, '@', n);
	const char *name = at ? at + 1 : host;
	return n && strspn(host, allowed) >= n && name < host + n && host[0] != '-' && host[0] != '@' &&
	       name[0] != '-';
}

/* [USER@]HOST[:/SOCKET]: a host's own colons, of IPv6, have no slash behind them. */
static int address_remote(const char *text, struct address *address, struct npumem_error *error)
{
	const char *colon = strstr(text, ":/");
	size_t n = colon ? (size_t)(colon - text) : strlen(text);
	if (n >= sizeof(address->host) || !is_host(text, n))
		return npumem_error_set(
			error, NPUMEM_INVALID,
			"\"ssh:%.100s\" has no host that could be asked: it is ssh:[USER@]HOST[:/SOCKET]", text);
	memcpy(address->host, text, n);
	return colon ? address_path("", colon + 1, address, error) : 0;
}

int address_parse(const char *text, struct address *address, struct npumem_error *error)
{
	*address = (struct address){.spawn = false};
	if (!text) {
		text = secure_getenv("NPUMEM_SOCKET");
		if (text && !*text)
			text = NULL;
	}
	if (!text) {
		const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
		if (runtime && *runtime && !address_path(runtime, "/npumem.sock", address, NULL) &&
		    !access(address->path, F_OK))
			return 0;
		return address_path("", ADDRESS_SYSTEM_PATH, address, error);
	}
	if (!strncmp(text, "spawn:", 6)) {
		address->spawn = true;
		address->options = text + 6;
		return 0;
	}
	if (!strncmp(text, "ssh:", 4))
		return address_remote(text + 4, address, error);
	return address_path("", strncmp(text, "unix:", 5) ? text : text + 5, address, error);
}

/* Where a daemon's queue of connections is full, connect waits for as long as a send may. */
static int connect_until(int fd, const struct sockaddr_un *name, int64_t until)
{
	for (;;) {
		int left = clock_left(until);
		struct timeval timeout = {.tv_sec = left / 1000, .tv_usec = left % 1000 * 1000};
		if (!left)
			return -ETIMEDOUT;
		if (left > 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)))
			return -errno;
		if (!connect(fd, (const struct sockaddr *)name, sizeof(*name)))
			return 0;
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
	}
}

int address_listen(const struct address *address, int *fd, struct npumem_error *error)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	memcpy(name.sun_path, address->path, sizeof(name.sun_path));
	*fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*fd >= 0 && !bind(*fd, (const struct sockaddr *)&name, sizeof(name)) && !listen(*fd, SOMAXCONN))
		return 0;
	int err = errno;
	if (*fd >= 0)
		close(*fd);
	return npumem_error_set(error, NPUMEM_UNAVAILABLE, "cannot listen at %s: %s", address->path,
				strerror(err));
}

int address_connect(const struct address *address, int64_t until, int *fd, struct npumem_error *error)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	memcpy(name.sun_path, address->path, sizeof(name.sun_path));
	*fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return npumem_error_set(error, NPUMEM_UNAVAILABLE, "cannot make a socket: %s", strerror(errno));
	int err = connect_until(*fd, &name, until);
	int status = err ? 0 : peer_check(address->path, *fd, error);
	if (!err && !status)
		return 0;
	close(*fd);
	if (status)
		return status;
	return npumem_error_set(error, err == -ETIMEDOUT ? NPUMEM_DEADLINE_EXCEEDED : NPUMEM_UNAVAILABLE,
				"cannot reach a daemon at %s: %s", address->path, strerror(-err));
}

int address_try(const struct address *address, int *fd)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	memcpy(name.sun_path, address->path, sizeof(name.sun_path));
	*fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*fd < 0)
		return -errno;
	if (!connect(*fd, (const struct sockaddr *)&name, sizeof(name)))
		return 0;
	int err = -errno;
	close(*fd);
	return err;
}
