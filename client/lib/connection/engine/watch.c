/* Invariant: the set of an open watch has the timer and `socket`, for reading, and where `wants_write` for
 * writing. */
#include "client/lib/connection/engine/engine.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int control(const struct watch *watch, int operation)
{
	struct epoll_event event = {.events = EPOLLIN | (watch->wants_write ? EPOLLOUT : 0)};
	return epoll_ctl(watch->fd, operation, watch->socket, &event) ? -errno : 0;
}

int watch_open(struct watch *watch, int socket)
{
	struct epoll_event event = {.events = EPOLLIN};
	*watch = WATCH_INIT;
	watch->fd = epoll_create1(EPOLL_CLOEXEC);
	watch->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	int err = watch->fd < 0 || watch->timer < 0 || epoll_ctl(watch->fd, EPOLL_CTL_ADD, watch->timer, &event)
			  ? -errno
			  : watch_replace(watch, socket);
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

void watch_timer(struct watch *watch, int64_t at)
{
	if (watch->fd < 0 || watch->at == at)
		return;
	bool is_never = at == CLOCK_NEVER;
	struct itimerspec timer = {
		.it_value = {.tv_sec = is_never ? 0 : at / 1000000000, .tv_nsec = is_never ? 0 : at % 1000000000}};
	timerfd_settime(watch->timer, TFD_TIMER_ABSTIME, &timer, NULL);
	watch->at = at;
}

void watch_close(struct watch *watch)
{
	if (watch->fd >= 0)
		close(watch->fd);
	if (watch->timer >= 0)
		close(watch->timer);
	*watch = WATCH_INIT;
}
