/* The daemon: one loop over the socket, its connections and its signals, around one device. */
#ifndef SERVER_CORE_H
#define SERVER_CORE_H

#include <uv.h>

#include "daemon/rpc/rpc.h"
#include "daemon/server/connections/accept.h"
#include "daemon/server/connections/address.h"
#include "daemon/server/connections/connections.h"
#include "daemon/server/connections/identity.h"
#include "daemon/server/process/accounts.h"
#include "daemon/server/process/notify.h"
#include "daemon/server/process/options.h"
#include "daemon/server/process/disk.h"
#include "daemon/server/process/signals.h"
#include "daemon/server/process/state.h"
#include "daemon/server/loop/closer.h"
#include "daemon/server/loop/share.h"
#include "daemon/server/loop/stopwatch.h"
#include "daemon/server/loop/workers.h"

struct server {
	uv_loop_t loop;
	const struct options *options;
	const struct heap *heap;
	struct state state;
	struct disk disk;
	struct device *device;
	struct service service;
	struct rpc rpc;
	struct workers workers;
	struct closer closer;
	struct share share;
	struct address address;
	struct accept accept;
	struct notify notify;
	struct stopwatch stopwatch;
	struct signals signals;
	uv_timer_t deadline; /* of what still runs, while the daemon is going down */
	uv_timer_t sweep;    /* looks for clients that take too long */
	uv_timer_t alarm;    /* for what is due by the clock: rpc_tick */
	struct turns turns;
	uv_check_t waited;	     /* after the loop has waited */
	struct turns_entry shutdown; /* was asked for by a request */
	struct identity identity;
	struct accounts accounts; /* of the uids that connect */
	struct connection_host connections;
	bool is_stopping;
	bool has_served; /* it has begun, so that its end is one */
	bool is_private; /* serves one connection, and ends with it */
};

#endif
