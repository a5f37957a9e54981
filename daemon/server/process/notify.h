/* Messages to systemd (sd_notify(3)): the daemon is ready, is stopping, or is alive. */
#ifndef SERVER_NOTIFY_H
#define SERVER_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <uv.h>

struct notify {
	int fd; /* -1: there is no systemd to notify */
	struct sockaddr_un to;
	socklen_t to_bytes;
	uv_timer_t timer; /* twice in the time after which systemd takes the daemon for dead */
	uv_check_t turn;
	uint64_t n_turns, n_told; /* of the loop: in all, and at the last sign of life */
	bool has_watchdog;
};

/* Reads $NOTIFY_SOCKET, $WATCHDOG_USEC and $WATCHDOG_PID, and starts to feed the watchdog if there is one. Errors
 * in them are logged. Keeps no loop alive. Zeroed with fd -1, a struct notify is as good as closed. */
void notify_open(struct notify *notify, uv_loop_t *loop);
/* `status` is a line for people. Waits while systemd's queue is full. */
void notify_ready(struct notify *notify, const char *status);
void notify_stopping(struct notify *notify);
/* Has systemd keep a copy of `fd` over the daemon's next starts, and pass it then under this name (activate_kept).
 * 0 or -errno; it is not known whether the unit allows it (FileDescriptorStoreMax=). Waits while systemd's queue
 * is full. */
int notify_keep(const struct notify *notify, int fd, const char *name);
/* Has systemd drop the descriptors of that name. */
void notify_drop(const struct notify *notify, const char *name);
/* The loop must run once more before the struct may go. */
void notify_close(struct notify *notify);

#endif
