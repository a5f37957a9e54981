/* Invariant: the loop ends when the last handle is closed; only what is here closes those that would keep it
 * alive.
 */
#include "daemon/server/stopping.h"

#include <stddef.h>

#include "daemon/server/process/log.h"

enum {
	MS_PER_SECOND = 1000,
	STOP_SWEEP_MS = 200,
	STOP_DRAIN_MS = 2000, /* for clients to read their last replies */
};

/* The last that keeps the loop alive. */
static void close_rest(struct server *server)
{
	signals_close(&server->signals);
	uv_close((uv_handle_t *)&server->deadline, NULL);
	uv_close((uv_handle_t *)&server->sweep, NULL);
}

static void on_deadline(uv_timer_t *timer)
{
	struct server *server = timer->data;
	unsigned n_requests, n = connections_busy(&server->connections, &n_requests);

	log_line(LOG_LEVEL_WARNING, "%u requests of %u clients have not ended within %lld s: they are cut off",
		 n_requests, n, (long long)server->options->stop_seconds);
	connections_close(&server->connections, "the daemon ends");
}

/* Clients that were not accepted may have passed descriptors already, which are closed with the socket. */
static void close_socket(struct server *server)
{
	int fd = address_release(&server->address);

	closer_count(&server->closer.nobody, 1);
	closer_add_connection(&server->closer.nobody, fd);
}

/* Takes no more requests, answers those that there are, lets clients read that, and ends the loop. */
static void stop(struct server *server)
{
	if (server->is_stopping)
		return;
	server->is_stopping = true;
	server->rpc.keeps_sessions = true;
	rpc_synced(&server->rpc);
	notify_stopping(&server->notify);
	if (server->address.fd >= 0) {
		accept_stop(&server->accept);
		close_socket(server);
	}
	uv_close((uv_handle_t *)&server->alarm, NULL);
	if (!server->connections.connections) {
		close_rest(server);
		return;
	}
	uv_timer_start(&server->deadline, on_deadline, (uint64_t)server->options->stop_seconds * MS_PER_SECOND, 0);
	uv_timer_set_repeat(&server->sweep, STOP_SWEEP_MS);
	uv_timer_again(&server->sweep);
	if (server->connections.drain_ms > STOP_DRAIN_MS)
		server->connections.drain_ms = STOP_DRAIN_MS;
	connections_end(&server->connections);
}

void stopping_client_gone(void *ctx)
{
	struct server *server = ctx;

	if (server->connections.connections)
		return;
	/* A daemon of one connection has nothing left to do; one that goes down was waiting for this. */
	if (server->is_stopping)
		close_rest(server);
	else if (server->is_private)
		stop(server);
}

void stopping_run(struct turns_entry *entry)
{
	stop((struct server *)((char *)entry - offsetof(struct server, shutdown)));
}

void stopping_requested(void *ctx, const struct session *session)
{
	struct server *server = ctx;

	log_session(LOG_LEVEL_INFO, session, "shuts the daemon down");
	turns_add_last(&server->turns, &server->shutdown);
}

void stopping_on_signal(void *ctx, const char *why)
{
	struct server *server = ctx;
	unsigned n_requests, n = connections_busy(&server->connections, &n_requests);

	if (why && server->is_stopping) {
		log_line(LOG_LEVEL_WARNING, "%s again: %u requests of %u clients are cut off", why, n_requests, n);
		connections_close(&server->connections, "the daemon ends");
		return;
	}
	if (why && n_requests)
		log_line(LOG_LEVEL_INFO, "%s: finishing %u requests of %u clients", why, n_requests, n);
	else if (why)
		log_line(LOG_LEVEL_INFO, "%s: finishing what runs", why);
	stop(server);
}
