/* Invariant: the set of an open watch has `socket` alone, for reading, and where `wants_write` for writing. */
#include "client/lib/connection/watch.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

static int control(const struct watch *watch, int operation)
{
	struct epoll_event event = {.events = EPOLLIN | (watch->wants_write ? EPOLLOUT : 0)};
	return epoll_ctl(watch->fd, operation, watch->socket, &event) ? -errno : 0;
}

int watch_open(struct watch *watch, int socket)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);
	if (fd < 0)
		return -errno;
	*watch = (struct watch){.fd = fd, .socket = -1};
	int err = watch_replace(watch, socket);
	if (err)
		watch_close(watch);
	return err;
}

int watch_replace(struct watch *watch, int socket)
{
	if (watch->fd < 0)
		return 0;
	/* Said, for a child of this process may have the socket, too, and it would not go by being closed. */
	if (watch->socket >= 0)
		control(watch, EPOLL_CTL_DEL);
	watch->socket = socket;
	watch->wants_write = false;
	int err = socket < 0 ? 0 : control(watch, EPOLL_CTL_ADD);
	if (err)
		watch->socket = -1;
	return err;
}

void watch_write(struct watch *watch, bool wants_write)
{
	if (watch->fd < 0 || watch->socket < 0 || watch->wants_write == wants_write)
		return;
	watch->wants_write = wants_write;
	control(watch, EPOLL_CTL_MOD);
}

void watch_close(struct watch *watch)
{
	if (watch->fd >= 0)
		close(watch->fd);
	*watch = (struct watch){.fd = -1, .socket = -1};
}
