/* All connections of a daemon: begins them, and ends those that take too long. */
#ifndef SERVER_CONNECTIONS_H
#define SERVER_CONNECTIONS_H

#include "daemon/server/connections/connection.h"

/* Takes over a connected socket, also if it fails, and adds a connection. 0 or -errno. */
int connections_open(struct connection_host *host, int fd);
/* Sends a reason to a client that is not served, if its socket takes that much without waiting, and closes it. */
void connections_refuse(struct connection_host *host, int fd, int status, const char *reason);

/* Closes connections whose frame is late or that do not read. */
void connections_sweep(struct connection_host *host);

/* Receives nothing more; each is closed when its replies are sent. */
void connections_end(struct connection_host *host);
/* Closes all of them at once, and logs the reason for each. */
void connections_close(struct connection_host *host, const char *reason);

/* Ends the session's connection at once: its client has another connection, and gets no more replies over this
 * one. */
void connections_hang_up(struct session *session);

/* Returns how many connections have requests under way, and sets n_requests to the number of these requests. */
unsigned connections_busy(const struct connection_host *host, unsigned *n_requests);

#endif
