/* The daemon: one loop over the socket, its connections and its signals, around one device. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <uv.h>

#include "daemon/rpc/rpc.h"
#include "daemon/server/accept.h"
#include "daemon/server/address.h"
#include "daemon/server/connection.h"
#include "daemon/server/notify.h"
#include "daemon/server/options.h"
#include "daemon/server/stopwatch.h"
#include "daemon/server/workers.h"

enum { SERVER_INPUT_BYTES = 256 << 10 };

struct server {
	uv_loop_t loop;
	const struct options *options;
	const struct heap *heap;
	void *memory; /* of the device */
	size_t memory_bytes;
	struct device *device;
	struct service service;
	struct rpc rpc;
	struct workers workers;
	struct address address;
	struct accept accept;
	struct notify notify;
	struct stopwatch stopwatch;
	uv_signal_t terminate, interrupt;
	uv_timer_t deadline; /* for clients that do not read, while the daemon is going down */
	uv_timer_t sweep;    /* looks for clients that do not read */
	uv_idle_t turns;     /* runs while connections have requests for another turn */
	uv_timer_t alarm;    /* for what is due by the clock: rpc_tick */
	struct connection *connections;
	struct connection *ready; /* those, the next first */
	bool is_stopping;
	/* Used by one connection at a time, so that an idle one costs nothing. */
	struct buffer spare;
	uint8_t input[SERVER_INPUT_BYTES];
};

/* Runs the daemon until it is told to stop. 0, or -errno with one line in `error` where it cannot start. */
int server_run(const struct options *options, char error[ADDRESS_ERROR_BYTES]);

/* Takes no more requests, lets each connection send what it has, and ends the loop. */
void server_stop(struct server *server);

/* A connection has handled its share of requests and has more: it gets another turn after the others. */
void server_add_ready(struct server *server, struct connection *connection);
void server_remove_ready(struct server *server, struct connection *connection);

/* Told by a connection that it is no longer one of `connections`. */
void server_closed_one(struct server *server);

#endif
