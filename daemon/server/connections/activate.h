/* The socket that systemd (sd_listen_fds(3)), or another parent process, has opened for the daemon. */
#ifndef SERVER_ACTIVATE_H
#define SERVER_ACTIVATE_H

#include <stdbool.h>

#include "daemon/server/connections/address.h"

/* Whether `fd` is a Unix stream socket to accept from. */
bool activate_listens(int fd);
/* Makes it non-blocking, and not for children. 0, or -errno with one line in `error`. */
int activate_prepare(int fd, char error[ADDRESS_ERROR_BYTES]);

/* Prefix of the names under which systemd keeps descriptors for the daemon. */
#define ACTIVATE_KEPT "npumem-"

/* The descriptor that was kept under that name and passed to this process, or -1. */
int activate_kept(const char *name);

/* Sets `fd` to the listening socket, non-blocking and not for children; the caller's. -1: none was passed to this
 * process. 0; -errno with one line in `error`: more than one was passed, or another descriptor without
 * ACTIVATE_KEPT. */
int activate_take(int *fd, char error[ADDRESS_ERROR_BYTES]);

#endif
