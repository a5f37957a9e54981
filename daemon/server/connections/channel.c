#include "daemon/server/connections/channel.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct channel *channel = poll->data;

	/* The next call that uses the socket returns its error. */
	if (status < 0)
		events = channel->events;
	channel->ready(channel, events & UV_READABLE, events & UV_WRITABLE);
}

int channel_open(struct channel *channel, uv_loop_t *loop, struct closer_user *user, int fd,
		 void (*ready)(struct channel *channel, bool readable, bool writable))
{
	/* Also makes it non-blocking. */
	int status = uv_poll_init(loop, &channel->poll, fd), on = 1;

	if (status) {
		closer_add_connection(user, fd);
		closer_drop_user(user);
		return status;
	}
	/* Otherwise recvmsg drops an out-of-band byte and closes the fds that came with it, which can sleep. */
	setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on));
	channel->poll.data = channel;
	channel->user = user;
	channel->fd = fd;
	channel->events = -1;
	channel->ready = ready;
	channel->n_fds = 0;
	channel->has_lost_fds = false;
	return 0;
}

static void on_closed(uv_handle_t *handle)
{
	struct channel *channel = handle->data;

	channel->closed(channel);
}

void channel_close(struct channel *channel, void (*closed)(struct channel *channel))
{
	channel_drop_fds(channel);
	channel->closed = closed;
	uv_close((uv_handle_t *)&channel->poll, on_closed);
	/* The close may wait for other closes of this user. */
	shutdown(channel->fd, SHUT_RDWR);
	closer_add_connection(channel->user, channel->fd);
	closer_drop_user(channel->user);
}

int channel_watch(struct channel *channel, bool readable, bool writable)
{
	int events = (readable ? UV_READABLE : 0) | (writable ? UV_WRITABLE : 0);

	if (events == channel->events)
		return 0;
	channel->events = events;
	/* epoll always reports a hang-up, but libuv only together with a watched event. So out-of-band data is
	 * watched, which no client sends. */
	return uv_poll_start(&channel->poll, events | UV_PRIORITIZED, on_poll);
}

void channel_ignore(struct channel *channel)
{
	channel->events = -1;
	uv_poll_stop(&channel->poll);
}

bool channel_is_gone(const struct channel *channel)
{
	struct pollfd poll_fd = {.fd = channel->fd, .events = POLLPRI};

	return poll(&poll_fd, 1, 0) > 0;
}

static void keep_fds(struct channel *channel, struct msghdr *message)
{
	for (struct cmsghdr *control = CMSG_FIRSTHDR(message); control; control = CMSG_NXTHDR(message, control)) {
		size_t n = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS)
			continue;
		closer_count(channel->user, (unsigned)n);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(control) + i * sizeof(fd), sizeof(fd));
			if (channel->n_fds < CHANNEL_FDS_MAX) {
				channel->fds[channel->n_fds++] = fd;
			} else {
				closer_add_received(channel->user, fd);
				channel->has_lost_fds = true;
			}
		}
	}
}

/* Keeps up to `n_fds` fds. */
static ssize_t receive(struct channel *channel, void *to, size_t bytes, unsigned n_fds, int flags)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(CLOSER_MESSAGE_FDS * sizeof(int))];
	} control;
	struct iovec iov = {to, bytes};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	message.msg_control = n_fds ? control.bytes : NULL;
	message.msg_controllen = n_fds ? CMSG_SPACE(n_fds * sizeof(int)) : 0;
	do
		n = recvmsg(channel->fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT | flags);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (message.msg_controllen)
		keep_fds(channel, &message);
	if (message.msg_flags & MSG_CTRUNC)
		channel->has_lost_fds = true;
	return n;
}

/* With MSG_PEEK the fds stay in the queue, so that the kernel does not drop the last reference if there is no room
 * for them. A FUSE file that was never received can be closed without its server. */
static ssize_t receive_carefully(struct channel *channel, void *to, size_t bytes)
{
	unsigned n_fds = closer_may_pass(channel->user) ? CHANNEL_FDS_MAX - channel->n_fds : 0;
	ssize_t n = receive(channel, to, bytes, n_fds, MSG_PEEK);

	if (n <= 0 || channel->has_lost_fds)
		return n;
	/* The same bytes, and fds that are kept already. */
	n = receive(channel, to, (size_t)n, 0, 0);
	channel->has_lost_fds = false;
	return n;
}

ssize_t channel_receive(struct channel *channel, void *to, size_t bytes)
{
	/* Room for as many fds as a message can carry: the kernel would close the others here, on the loop. */
	if (closer_has_room(channel->user->closer) && closer_may_pass(channel->user))
		return receive(channel, to, bytes, CLOSER_MESSAGE_FDS, 0);
	return receive_carefully(channel, to, bytes);
}

ssize_t channel_send(struct channel *channel, const void *from, size_t bytes)
{
	ssize_t n;

	do
		n = send(channel->fd, from, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
	return n;
}

int channel_take_fd(struct channel *channel)
{
	int fd;

	if (!channel->n_fds)
		return -1;
	fd = channel->fds[0];
	memmove(channel->fds, channel->fds + 1, --channel->n_fds * sizeof(fd));
	return fd;
}

void channel_drop_fds(struct channel *channel)
{
	while (channel->n_fds)
		closer_add_received(channel->user, channel->fds[--channel->n_fds]);
}
