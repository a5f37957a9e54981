/* accept() by hand, because of what happens without fds: libuv would drop such a client without a message. A
 * reserve fd is closed for as long as it takes to send the client the reason. On other shortages, and after many
 * connections, the socket is not polled for a while; clients wait in its backlog. Invariant: polling, backing off,
 * or stopped. */
#include "daemon/server/connections/accept.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/server/process/log.h"

enum {
	AT_ONCE = 16, /* connections taken before the socket is not polled for PACE_MS */
	PACE_MS = 1,
	BACKOFF_MS = 10,
};

static void on_readable(uv_poll_t *poll, int status, int events);

static void on_backoff_over(uv_timer_t *timer)
{
	struct accept *accept = timer->data;

	uv_poll_start(&accept->poll, UV_READABLE, on_readable);
}

static int open_reserve(void)
{
	return eventfd(0, EFD_CLOEXEC);
}

/* Closes the reserve to refuse one connection. 0, or the error of accept. */
static int use_reserve(struct accept *accept)
{
	int fd, status = 0;

	close(accept->reserve_fd);
	accept->reserve_fd = -1;
	fd = accept4(accept->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		accept->refused(accept->ctx, fd);
	else
		status = errno;
	accept->reserve_fd = open_reserve();
	return status;
}

/* Takes one connection. 0, or an errno; EAGAIN: there is none. */
static int take(struct accept *accept)
{
	int fd, status;

	/* The connection that was refused last may not be closed yet. The reserve is opened first, or the next
	 * connection could not be refused. */
	if (accept->reserve_fd < 0)
		accept->reserve_fd = open_reserve();
	if (accept->reserve_fd < 0)
		return errno;
	fd = accept4(accept->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		accept->is_short = false;
		accept->taken(accept->ctx, fd);
		return 0;
	}
	status = errno;
	/* The kernel takes an fd before it looks for a client, so there may be no client at all. */
	if (status == EMFILE || status == ENFILE)
		status = use_reserve(accept);
	if (status == ECONNABORTED || status == EINTR)
		return 0;
	if (status != EAGAIN && !accept->is_short) {
		log_line(LOG_LEVEL_WARNING, "no more connections for now: %s",
			 uv_strerror(status ? -status : UV_EMFILE));
		accept->is_short = true;
	}
	return status;
}

static void leave_alone(struct accept *accept, unsigned ms)
{
	uv_poll_stop(&accept->poll);
	uv_timer_start(&accept->backoff, on_backoff_over, ms, 0);
}

/* The kernel's queue has connections of all users in the order that they came, and its end is not known. Without a
 * pause in between, a user that connects and hangs up in a loop would keep the daemon's loop busy. */
static void on_readable(uv_poll_t *poll, int status, int events)
{
	struct accept *accept = poll->data;
	int failed = 0;

	(void)status;
	(void)events;
	for (unsigned i = 0; i < AT_ONCE && !failed && accept->may_take(accept->ctx); i++)
		failed = take(accept);
	if (failed != EAGAIN)
		leave_alone(accept, failed ? BACKOFF_MS : PACE_MS);
}

int accept_start(struct accept *accept, uv_loop_t *loop, int fd, bool (*may_take)(void *ctx),
		 void (*taken)(void *ctx, int fd), void (*refused)(void *ctx, int fd), void *ctx)
{
	int status;

	*accept = (struct accept){.fd = fd,
				  .reserve_fd = open_reserve(),
				  .may_take = may_take,
				  .taken = taken,
				  .refused = refused,
				  .ctx = ctx};
	uv_timer_init(loop, &accept->backoff); /* which cannot fail */
	status = uv_poll_init(loop, &accept->poll, fd);
	accept->poll.data = accept->backoff.data = accept;
	return status ? status : uv_poll_start(&accept->poll, UV_READABLE, on_readable);
}

void accept_stop(struct accept *accept)
{
	if (accept->reserve_fd >= 0)
		close(accept->reserve_fd);
	accept->reserve_fd = -1;
	uv_close((uv_handle_t *)&accept->poll, NULL);
	uv_close((uv_handle_t *)&accept->backoff, NULL);
}
