/* A client's connection: its bytes in, its replies out, and its session. */
#ifndef SERVER_CONNECTION_H
#define SERVER_CONNECTION_H

#include "daemon/rpc/rpc.h"
#include "daemon/server/channel.h"
#include "daemon/server/input.h"
#include "daemon/server/outbox.h"
#include "daemon/service/session.h"

struct server;

struct connection {
	struct channel channel; /* first, so that the one is the other */
	struct server *server;
	struct session session;
	struct rpc_peer peer;
	struct segments_source memory;
	struct connection *next, *prev;
	struct input input;
	struct outbox outbox;
	uint64_t moved_ms; /* when the client last took some of a reply */
	bool is_handling;  /* its frames are being handled: what is delivered is sent after that */
	bool is_paused; /* the client does not read, or has much under way: nothing is taken from it until then */
	bool is_ending; /* to be closed when all replies are sent */
	bool is_closed;
	bool has_more; /* whole frames are kept for its next turn */
	struct connection *next_ready;
};

/* Takes a connected socket, which is closed in any case, and adds a connection to the server's. 0 or -errno. */
int connection_open(struct server *server, int fd);
/* Its next turn: handles what it has kept. */
void connection_turn(struct connection *connection);
/* Drops a client that has not taken a byte of its replies for `timeout_ms`. */
void connection_sweep(struct connection *connection, uint64_t now_ms, uint64_t timeout_ms);
/* Reads no more, sends what there is to say, and closes. */
void connection_end(struct connection *connection);
/* Drops the client at once; session, socket and struct go when nothing runs for it any more. */
void connection_close(struct connection *connection);

#endif
