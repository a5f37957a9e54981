/* accept() by hand, because of what happens without fds: libuv would drop such a client without a word. A reserve
 * fd is given up for as long as it takes to tell the client why. For other shortages the socket is left alone for
 * a while; clients wait in its backlog. Invariant: polling, backing off, or stopped. */
#include "daemon/server/connections/accept.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/device/memory/heap.h"
#include "daemon/rpc/rpc.h"
#include "daemon/server/process/log.h"

enum {
	AT_ONCE = 16, /* connections taken before others get their turn */
	BACKOFF_MS = 100,
};

static void on_readable(uv_poll_t *poll, int status, int events);

static void on_backoff_over(uv_timer_t *timer)
{
	struct accept *accept = timer->data;

	uv_poll_start(&accept->poll, UV_READABLE, on_readable);
}

void accept_turn_away(int fd, int status, const char *reason)
{
	struct buffer out;

	buffer_init(&out, &heap_libc);
	if (rpc_refuse(&out, status, reason) == 0 &&
	    send(fd, out.bytes, out.used, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		log_line(LOG_LEVEL_DEBUG, "a client did not wait to be turned away");
	buffer_deinit(&out);
	close(fd);
}

static int open_reserve(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* With the reserve given up: 0, or why there was nobody to turn away. */
static int use_reserve(struct accept *accept)
{
	int fd, status = 0;

	if (accept->reserve_fd < 0)
		return EMFILE;
	close(accept->reserve_fd);
	fd = accept4(accept->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		accept_turn_away(fd, NPUMEM_RESOURCE_EXHAUSTED,
				 "the daemon has no file descriptor left for this connection");
	else
		status = errno;
	accept->reserve_fd = open_reserve();
	return status;
}

/* 0, or why none can be taken now; EAGAIN: there is none. */
static int take(struct accept *accept)
{
	int fd = accept4(accept->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), status;

	if (fd >= 0) {
		accept->is_short = false;
		accept->taken(accept->ctx, fd);
		return 0;
	}
	status = errno;
	/* The kernel looks for an fd first and for a client then, so this may be about nobody at all. */
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

static void on_readable(uv_poll_t *poll, int status, int events)
{
	struct accept *accept = poll->data;

	(void)status;
	(void)events;
	for (unsigned i = 0; i < AT_ONCE; i++) {
		int failed = take(accept);

		if (failed == EAGAIN)
			return;
		if (!failed)
			continue;
		uv_poll_stop(&accept->poll);
		uv_timer_start(&accept->backoff, on_backoff_over, BACKOFF_MS, 0);
		return;
	}
}

int accept_start(struct accept *accept, uv_loop_t *loop, int fd, void (*taken)(void *ctx, int fd), void *ctx)
{
	int status;

	*accept = (struct accept){.fd = fd, .reserve_fd = open_reserve(), .taken = taken, .ctx = ctx};
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
