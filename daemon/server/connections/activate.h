/* The socket that systemd has opened for the daemon (sd_listen_fds(3)). */
#ifndef SERVER_ACTIVATE_H
#define SERVER_ACTIVATE_H

#include "daemon/server/connections/address.h"

/* In `fd` the listening socket, non-blocking and not for children; the caller's. -1: none was passed to this
 * process. 0; -errno with one line in `error` where more than one was passed, or something else. */
int activate_take(int *fd, char error[ADDRESS_ERROR_BYTES]);

#endif
