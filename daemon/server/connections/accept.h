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
	bool is_short;	/* of fds or memory, and it was said */
	void (*taken)(void *ctx, int fd);
	void *ctx;
};

/* `taken` owns each fd it gets. 0 or -errno. */
int accept_start(struct accept *accept, uv_loop_t *loop, int fd, void (*taken)(void *ctx, int fd), void *ctx);
/* The loop must run once more before the struct may go. */
void accept_stop(struct accept *accept);

/* Sends a reason to a client that is not served, if its socket takes that much without waiting, and closes `fd`.
 */
void accept_turn_away(int fd, int status, const char *reason);

#endif
