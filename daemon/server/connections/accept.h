/* Takes connections from the listening socket, also when there is no fd left for them. */
#ifndef SERVER_ACCEPT_H
#define SERVER_ACCEPT_H

#include <stdbool.h>
#include <uv.h>

struct accept {
	uv_poll_t poll;
	uv_timer_t backoff;
	int fd;		/* the listening socket; not owned */
	int reserve_fd; /* kept open, to be given up for a moment */
	bool is_short;	/* of fds or memory, and that was logged */
	bool (*may_take)(void *ctx);
	void (*taken)(void *ctx, int fd);
	void (*refused)(void *ctx, int fd);
	void *ctx;
};

/* `taken` and `refused` own each fd that they get; `refused` gets those for which only the reserve had room. While
 * `may_take` returns false no connection is taken; it is called again every millisecond. 0 or -errno. */
int accept_start(struct accept *accept, uv_loop_t *loop, int fd, bool (*may_take)(void *ctx),
		 void (*taken)(void *ctx, int fd), void (*refused)(void *ctx, int fd), void *ctx);
/* The loop must run once more before the struct may go. */
void accept_stop(struct accept *accept);

#endif
