/* Address forms, and connecting to a socket's path. Does not start daemons: spawn.c does. */
#include "client/lib/address.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

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

int address_parse(const char *text, struct address *address, struct npumem_error *error)
{
	*address = (struct address){.spawn = false};
	if (!text) {
		text = getenv("NPUMEM_SOCKET");
		if (text && !*text)
			text = NULL;
	}
	if (!text) {
		const char *runtime = getenv("XDG_RUNTIME_DIR");
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
	return address_path("", strncmp(text, "unix:", 5) ? text : text + 5, address, error);
}

int address_connect(const struct address *address, int *fd, struct npumem_error *error)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	memcpy(name.sun_path, address->path, sizeof(name.sun_path));
	*fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return npumem_error_set(error, NPUMEM_UNAVAILABLE, "cannot make a socket: %s", strerror(errno));
	int result;
	do
		result = connect(*fd, (const struct sockaddr *)&name, sizeof(name));
	while (result < 0 && errno == EINTR);
	if (!result)
		return 0;
	npumem_error_set(error, NPUMEM_UNAVAILABLE, "cannot reach a daemon at %s: %s", address->path,
			 strerror(errno));
	close(*fd);
	return NPUMEM_UNAVAILABLE;
}
