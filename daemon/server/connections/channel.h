/* A connected Unix stream socket on the loop: bytes both ways, and the fds that come with them.
 * Not a uv_pipe_t, because libuv only hands out received fds that it knows as streams, and a memfd is none (libuv
 * issue 1587): here recvmsg is ours and the loop only tells when. */
#ifndef SERVER_CHANNEL_H
#define SERVER_CHANNEL_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "daemon/server/loop/closer.h"

/* That wait for their frame: one of a frame that has not all come, and one of the next. */
enum { CHANNEL_FDS_MAX = 2 };

struct channel {
	uv_poll_t poll;
	struct closer_user *user; /* closes the socket, and fds that nobody takes */
	int fd;
	int events; /* asked for; -1: not even whether the client is gone */
	void (*ready)(struct channel *channel, bool readable, bool writable);
	void (*closed)(struct channel *channel);
	int fds[CHANNEL_FDS_MAX];
	unsigned n_fds;
	bool has_lost_fds; /* more came than are kept, or than the user or this process may have */
};

/* Takes `fd`, which was counted (closer_count), and a reference to `user`; where it fails both are given back.
 * Nothing is watched yet. 0 or -errno. */
int channel_open(struct channel *channel, uv_loop_t *loop, struct closer_user *user, int fd,
		 void (*ready)(struct channel *channel, bool readable, bool writable));
/* The client finds the end of the stream at once; the socket is closed by another thread. `closed` is called from
 * the loop; the storage is the caller's again then. */
void channel_close(struct channel *channel, void (*closed)(struct channel *channel));

/* What `ready` is to be told; from then on it is also called, with neither, when the client is gone. 0 or -errno.
 */
int channel_watch(struct channel *channel, bool readable, bool writable);

/* `ready` is told nothing any more. */
void channel_ignore(struct channel *channel);

/* True where the client has closed the socket, and not only said that it sends no more. */
bool channel_is_gone(const struct channel *channel);

/* Bytes, 0 at the end, -EAGAIN, or -errno; fds that came with them are kept. Where `has_lost_fds` is set, the
 * bytes may come again: the channel is to be closed. */
ssize_t channel_receive(struct channel *channel, void *to, size_t bytes);
/* Bytes taken, 0 where there is no room now, or -errno. */
ssize_t channel_send(struct channel *channel, const void *from, size_t bytes);

/* The oldest fd that came and was not taken, the caller's now; -1 where there is none. */
int channel_take_fd(struct channel *channel);
/* Hands those that nobody took to the closer. */
void channel_drop_fds(struct channel *channel);

#endif
