/* A connected Unix stream socket on the loop: bytes both ways, and the fds that come with them. Not a uv_pipe_t,
 * because libuv only hands out received fds that it knows as streams, and a memfd is none (libuv issue 1587): here
 * the channel calls recvmsg, and the loop only says when. */
#ifndef SERVER_CHANNEL_H
#define SERVER_CHANNEL_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "daemon/server/loop/closer.h"

/* Fds that wait for their frame: one of an incomplete frame, and one of the next. */
enum { CHANNEL_FDS_MAX = 2 };

struct channel {
	uv_poll_t poll;
	struct closer_user *user; /* closes the socket, and fds that no request takes */
	int fd;
	int events; /* watched; -1: not even a hang-up */
	void (*ready)(struct channel *channel, bool readable, bool writable);
	void (*closed)(struct channel *channel);
	int fds[CHANNEL_FDS_MAX];
	unsigned n_fds;
	bool has_lost_fds; /* more came than CHANNEL_FDS_MAX, or than the user or this process may have */
};

/* Takes over `fd`, which was counted (closer_count), and a reference to `user`, also if it fails. Nothing is
 * watched yet. 0 or -errno. */
int channel_open(struct channel *channel, uv_loop_t *loop, struct closer_user *user, int fd,
		 void (*ready)(struct channel *channel, bool readable, bool writable));
/* The client reads the end of the stream at once; another thread closes the socket. The loop calls `closed` when
 * the storage may be freed. */
void channel_close(struct channel *channel, void (*closed)(struct channel *channel));

/* Sets the events for which `ready` is called; it is also called, with neither, when the client is gone. 0 or
 * -errno. */
int channel_watch(struct channel *channel, bool readable, bool writable);

/* `ready` is not called any more. */
void channel_ignore(struct channel *channel);

/* True: the client has closed the socket, and not only shut down its sending half. */
bool channel_is_gone(const struct channel *channel);

/* Returns the number of bytes, 0 at the end, -EAGAIN, or -errno; keeps fds that came with them. If `has_lost_fds`
 * is set, the same bytes may come again, and the caller must close the channel. */
ssize_t channel_receive(struct channel *channel, void *to, size_t bytes);
/* Returns the number of bytes sent, 0 if the socket has no room now, or -errno. */
ssize_t channel_send(struct channel *channel, const void *from, size_t bytes);

/* Takes the oldest received fd, the caller's now; -1: there is none. */
int channel_take_fd(struct channel *channel);
/* Hands the received fds that were not taken to the closer. */
void channel_drop_fds(struct channel *channel);

#endif
