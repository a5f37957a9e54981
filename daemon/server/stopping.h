/* How the daemon ends: by a signal, a request, a disk that fails, or when its only client has gone. */
#ifndef SERVER_STOPPING_H
#define SERVER_STOPPING_H

#include "daemon/server/core.h"

/* Takes no more requests, answers those that there are, lets clients read that, and ends the loop. Of
 * server->shutdown, in a turn of its own. */
void stopping_run(struct turns_entry *entry);

/* For connections, rpc and signals; ctx is the server. */
void stopping_client_gone(void *ctx);
void stopping_requested(void *ctx, const struct session *session);
void stopping_on_signal(void *ctx, const char *why);

#endif
