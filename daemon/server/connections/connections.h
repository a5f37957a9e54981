/* All connections of a daemon: how they begin, and what becomes of those that take too long. */
#ifndef SERVER_CONNECTIONS_H
#define SERVER_CONNECTIONS_H

#include "daemon/server/connections/connection.h"

/* Takes a connected socket, which is closed in any case, and adds a connection. 0 or -errno. */
int connections_open(struct connection_host *host, int fd);
/* Sends a reason to a client that is not served, if its socket takes that much without waiting, and closes it. */
void connections_refuse(struct connection_host *host, int fd, int status, const char *reason);

/* Drops those whose frame has had its time, and those that do not read. */
void connections_sweep(struct connection_host *host);

/* Reads no more from any; each is closed when it has been answered and has read. */
void connections_end(struct connection_host *host);
/* Closes all of them at once, and logs for each why. */
void connections_close(struct connection_host *host, const char *reason);

/* Ends the one of this session at once: its client has another way to the daemon, and hears no more over this. */
void connections_hang_up(struct session *session);

/* How many have requests under way, and in all how many requests. */
unsigned connections_busy(const struct connection_host *host, unsigned *n_requests);

#endif
