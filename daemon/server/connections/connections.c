/* The list of connections. It is walked once a second, and when the daemon ends. */
#include "daemon/server/connections/connections.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/server/process/log.h"
#include "daemon/server/process/memory.h"
#include "daemon/server/connections/receive.h"

/* Queued as work of its user, as thousands of connections may be ready at the same moment. */
static void on_ready(struct channel *channel, bool readable, bool writable)
{
	struct connection *connection = (struct connection *)channel;

	/* Otherwise epoll reports all queued connections in each turn, and libuv asks up to 48 times if they are
	 * more than 1,024. Their own turn watches them again. */
	if (connection->is_broken || (readable && connection->is_readable) || (writable && connection->may_send))
		channel_ignore(channel);
	if (connection->is_broken)
		return;
	connection->is_readable |= readable;
	connection->may_send |= writable;
	if (!readable && channel_is_gone(channel))
		connection->is_broken = true;
	if (readable || writable || connection->is_broken)
		connection_queue(connection);
}

static bool reads_late(const struct connection *connection, uint64_t now_ms)
{
	return connection->is_sending && pace_is_over(&connection->leaving, now_ms);
}

static bool sends_late(const struct connection *connection, uint64_t now_ms)
{
	return !connection->is_ending && !receive_is_in_time(connection, now_ms);
}

static void end_late(struct connection *connection)
{
	uint64_t now_ms = uv_now(connection->host->loop);

	if (reads_late(connection, now_ms))
		connection_break(connection, "it does not read its replies");
	else if (sends_late(connection, now_ms))
		connection_refuse(connection, NPUMEM_DEADLINE_EXCEEDED,
				  "a frame that did not come in time: the connection ends");
}

static void run_turn(struct fair_work *entry)
{
	struct connection *connection = (struct connection *)((char *)entry - offsetof(struct connection, turn));

	if (connection->is_late && !connection->is_broken)
		end_late(connection);
	connection->is_late = false;
	if (connection->is_broken) {
		connection_close(connection);
	} else if (connection->may_send) {
		connection->may_send = false;
		connection_settle(connection);
		if (connection->is_readable)
			connection_queue(connection);
	} else {
		receive_turn(connection);
	}
}

/* Sends a reason, if the socket takes that much without waiting. */
static void turn_away(const struct ucred *peer, int fd, const struct npumem_error *error)
{
	struct session session = {.uid = peer->uid, .pid = peer->pid};
	struct buffer out;

	log_session(LOG_LEVEL_WARNING, &session, "turned away: %s", error->message);
	buffer_init(&out, &heap_libc);
	if (rpc_refuse(&out, error->status, error->message) == 0 &&
	    send(fd, out.bytes, out.used, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		log_session(LOG_LEVEL_DEBUG, &session, "did not wait to be turned away");
	buffer_deinit(&out);
	/* The close may wait for other closes of this user. */
	shutdown(fd, SHUT_RDWR);
}

static int check_identity(const struct connection_host *host, uint32_t uid, struct npumem_error *error)
{
	if (!host->identity || identity_is_known(host->identity, uid))
		return 0;
	return npumem_error_set(
		error, NPUMEM_PERMISSION_DENIED,
		"the daemon lives in a user namespace that has no name for this process's uid: it comes "
		"as uid %u, like every other that has none, and cannot be told from them",
		uid);
}

static int open_channel(struct connection *connection, struct closer_user *user, int fd)
{
	struct connection_host *host = connection->host;
	int status = channel_open(&connection->channel, host->loop, user, fd, on_ready);

	if (status) {
		session_deinit(&connection->session);
		heap_free(host->heap, connection);
		return status;
	}
	connection->memory = memory_source(&connection->channel);
	connection->session.segments_source = &connection->memory;
	connection->turn.run = run_turn;
	connection_init(connection);
	log_session(LOG_LEVEL_DEBUG, &connection->session, "begins");
	connection_settle(connection);
	return 0;
}

/* NULL: it is refused; `error` has the reason. */
static struct connection *begin(struct connection_host *host, const struct ucred *peer, struct npumem_error *error)
{
	struct connection *connection = heap_zalloc(host->heap, 1, sizeof(*connection));

	if (!connection) {
		heap_exhausted(error);
		return NULL;
	}
	connection->host = host;
	if (!check_identity(host, peer->uid, error) &&
	    !session_init(&connection->session, host->service, peer->uid, peer->pid, error))
		return connection;
	heap_free(host->heap, connection);
	return NULL;
}

/* Finds the peer and the user of a socket. 0; -errno: there is no peer to serve, and the socket is closed. */
static int identify(struct connection_host *host, int fd, struct ucred *peer, struct closer_user **user)
{
	socklen_t bytes = sizeof(*peer);
	int status = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &bytes) ? -errno : 0;

	*user = status ? &host->closer->nobody : closer_take_user(host->closer, peer->uid);
	closer_count(*user, 1);
	if (!status && *user == &host->closer->nobody)
		status = -ENOMEM;
	if (status)
		closer_add_turned_away(*user, fd);
	return status;
}

int connections_open(struct connection_host *host, int fd)
{
	struct npumem_error error = {.status = 0};
	struct connection *connection;
	struct closer_user *user;
	struct ucred peer;
	int status = identify(host, fd, &peer, &user);

	if (status)
		return status;
	connection = begin(host, &peer, &error);
	if (connection)
		return open_channel(connection, user, fd);
	turn_away(&peer, fd, &error);
	closer_add_turned_away(user, fd);
	closer_drop_user(user);
	return 0;
}

void connections_refuse(struct connection_host *host, int fd, int status, const char *reason)
{
	struct npumem_error error = {.status = 0};
	struct closer_user *user;
	struct ucred peer;

	if (identify(host, fd, &peer, &user))
		return;
	npumem_error_set(&error, status, "%s", reason);
	turn_away(&peer, fd, &error);
	closer_add_turned_away(user, fd);
	closer_drop_user(user);
}

void connections_sweep(struct connection_host *host)
{
	uint64_t now_ms = uv_now(host->loop);

	for (struct connection *connection = host->connections; connection; connection = connection->next) {
		if (connection->is_closed || connection->is_broken)
			continue;
		connection->is_late = reads_late(connection, now_ms) || sends_late(connection, now_ms);
		if (connection->is_late)
			connection_queue(connection);
	}
}

void connections_end(struct connection_host *host)
{
	for (struct connection *connection = host->connections; connection; connection = connection->next) {
		if (connection->is_closed)
			continue;
		connection->is_ending = true;
		connection->has_frames = false;
		input_deinit(&connection->input);
		pace_begin(&connection->leaving, uv_now(host->loop), host->drain_ms);
		rpc_peer_end_waiting(host->rpc, &connection->peer);
		turns_add_last(host->turns, &connection->last);
	}
}

void connections_close(struct connection_host *host, const char *reason)
{
	for (struct connection *connection = host->connections; connection; connection = connection->next)
		connection_break(connection, reason);
}

void connections_hang_up(struct session *session)
{
	struct connection *connection =
		(struct connection *)((char *)session - offsetof(struct connection, session));

	if (connection->is_closed || connection->is_broken)
		return;
	/* If that client is still there, it must not reconnect and take the session back in turn. */
	connection_refuse(connection, NPUMEM_CANCELLED, "the session goes on over another connection");
	connection->peer.send(connection);
	connection_break(connection, "its client is elsewhere");
}

unsigned connections_busy(const struct connection_host *host, unsigned *n_requests)
{
	unsigned n = 0;

	*n_requests = 0;
	for (const struct connection *connection = host->connections; connection; connection = connection->next) {
		n += connection->peer.n_calls > 0;
		*n_requests += connection->peer.n_calls;
	}
	return n;
}
