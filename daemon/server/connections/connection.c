/* A connection's replies, its charges and its end.
 *
 * Replies are collected here, and sent when the turn ends. A client that does not read its replies is not read
 * from either. Invariant: the socket is watched for input unless the connection is paused, ending, closed or
 * queued. */
#include "daemon/server/connections/connection.h"

#include <stddef.h>
#include <utlist.h>

#include "daemon/server/process/log.h"

enum {
	/* Replies that are not sent: with so many bytes nothing more is received from a client that does not read,
	 * and from one whose user holds all that it may. */
	UNSENT_BYTES_MAX = 1 << 20,
	UNSENT_BYTES_LEAST = 64 << 10,
	/* Requests under way, and bytes of their messages and replies, that a connection may have in any case:
	 * enough to keep every thread busy. It may have more, so that a later cancel is received, unless its user
	 * has half of its limit. */
	JOBS_LEAST = 256,
	JOB_BYTES_LEAST = 4 << 20,
	/* At a time: a socket that has room for a MiB takes it in one call, of up to 3 ms. */
	SEND_BYTES = 256 << 10,
};

/* ---- waiting for the disk ---- */

/* Starts the round at the end of the turn, so that it includes the changes of other clients in this turn. */
static void wait_for_disk(struct connection *connection)
{
	struct connection_host *host = connection->host;

	store_want(host->store, connection->session.user, &connection->round);
	if (connection->is_waiting)
		return;
	connection->is_waiting = true;
	DL_APPEND2(host->waiting, connection, prev_waiting, next_waiting);
}

static void stop_waiting(struct connection *connection)
{
	struct connection_host *host = connection->host;

	if (connection->is_waiting)
		DL_DELETE2(host->waiting, connection, prev_waiting, next_waiting);
	connection->is_waiting = false;
}

void connection_all_synced(struct connection_host *host)
{
	uint64_t synced = store_synced(host->store);
	struct connection *connection, *next;

	DL_FOREACH_SAFE2(host->waiting, connection, next, next_waiting)
	{
		if (!host->has_lost_state && connection->ripening.steps[0].position > synced)
			continue;
		connection->may_send = true;
		connection_queue(connection);
	}
}

/* ---- closing ---- */

static void on_closed(struct channel *channel)
{
	struct connection *connection = (struct connection *)channel;

	heap_free(connection->host->heap, connection);
}

/* Called when no request of the client runs any more. */
static void on_drained(void *ctx)
{
	struct connection *connection = ctx;
	struct connection_host *host = connection->host;

	log_session(LOG_LEVEL_DEBUG, &connection->session, "ends");
	input_deinit(&connection->input);
	outbox_deinit(&connection->outbox);
	channel_drop_fds(&connection->channel);
	connection_charge(connection);
	fair_queue_remove(&connection->turn);
	session_deinit(&connection->session);
	turns_remove(&connection->last);
	stop_waiting(connection);
	channel_close(&connection->channel, on_closed);
	DL_DELETE(host->connections, connection);
	host->gone(host->ctx);
}

void connection_close(struct connection *connection)
{
	if (connection->is_closed)
		return;
	connection->is_closed = true;
	channel_ignore(&connection->channel);
	rpc_peer_close(connection->host->rpc, &connection->peer);
}

void connection_break(struct connection *connection, const char *reason)
{
	if (connection->is_broken || connection->is_closed)
		return;
	log_session(LOG_LEVEL_WARNING, &connection->session, "dropped: %s", reason);
	connection->is_broken = true;
	turns_add_last(connection->host->turns, &connection->last);
}

/* Holds back the last reply until the disk has all earlier changes. */
static void hold_back(struct connection *connection)
{
	const struct store *store = connection->host->store;
	uint64_t position = connection->peer.is_stateless ? 0 : store_position(store);

	ripening_add(&connection->ripening, connection->ripening.sent + connection_unsent(connection), position,
		     store_synced(store));
}

void connection_refuse(struct connection *connection, int status, const char *reason)
{
	log_session(LOG_LEVEL_WARNING, &connection->session, "%s", reason);
	rpc_refuse(&connection->outbox.tail, status, reason);
	if (connection->host->store)
		hold_back(connection);
	connection->is_ending = true;
	connection->has_frames = false;
	input_deinit(&connection->input);
	turns_add_last(connection->host->turns, &connection->last);
}

/* ---- charges ---- */

void connection_charge(struct connection *connection)
{
	struct limits_table *table = &connection->host->service->limits;
	struct limits_user *user = connection->session.user;
	uint64_t bytes = connection->input.room + outbox_held(&connection->outbox);
	unsigned n_fds = connection->channel.n_fds;

	limits_charge(table, user, LIMITS_REQUEST_BYTES, bytes);
	limits_give_back(table, user, LIMITS_REQUEST_BYTES, connection->charged_bytes);
	limits_charge(table, user, LIMITS_DESCRIPTORS, n_fds);
	limits_give_back(table, user, LIMITS_DESCRIPTORS, connection->charged_fds);
	connection->charged_bytes = bytes;
	connection->charged_fds = n_fds;
}

/* Whether its user has at least 1/parts of its limit. */
static bool has_part(const struct connection *connection, enum limits_key key, unsigned parts)
{
	const struct limits_user *user = connection->session.user;

	return user->now[key] >= limits_most(&connection->host->service->limits, user, key) / parts;
}

bool connection_is_full(const struct connection *connection)
{
	const struct rpc_peer *peer = &connection->peer;
	size_t unsent = connection_unsent(connection);

	if (unsent > UNSENT_BYTES_MAX)
		return true;
	if (unsent > UNSENT_BYTES_LEAST && has_part(connection, LIMITS_REQUEST_BYTES, 1))
		return true;
	if (peer->n_calls >= JOBS_LEAST && has_part(connection, LIMITS_REQUESTS, 2))
		return true;
	return peer->call_bytes > JOB_BYTES_LEAST && has_part(connection, LIMITS_REQUEST_BYTES, 2);
}

/* ---- replies ---- */

/* Bytes that may leave. */
static size_t sendable(const struct connection *connection)
{
	if (!connection->host->store)
		return connection_unsent(connection);
	return (size_t)(connection->ripening.ripe - connection->ripening.sent);
}

static void ripen(struct connection *connection)
{
	struct connection_host *host = connection->host;

	if (!host->store)
		return;
	ripening_advance(&connection->ripening, store_synced(host->store));
	if (connection->ripening.n)
		wait_for_disk(connection);
	else
		stop_waiting(connection);
}

/* Sends queued replies, as far as the kernel takes them and at most SEND_BYTES. False: the client is gone. */
static bool send_queued(struct connection *connection)
{
	struct connection_host *host = connection->host;
	const uint8_t *bytes;
	size_t most, left = SEND_BYTES;

	while (left && sendable(connection) && (bytes = outbox_front(&connection->outbox, &most))) {
		most = most < sendable(connection) ? most : sendable(connection);
		most = most < left ? most : left;
		ssize_t n = channel_send(&connection->channel, bytes, most);

		if (n < 0)
			return false;
		outbox_take(&connection->outbox, (size_t)n);
		left -= (size_t)n;
		connection->ripening.sent += (size_t)n;
		pace_moved(&connection->leaving, (size_t)n, uv_now(host->loop), host->drain_ms);
		if ((size_t)n < most)
			break;
	}
	return true;
}

static bool flush(struct connection *connection)
{
	struct connection_host *host = connection->host;

	if (host->has_lost_state)
		return false;
	ripen(connection);
	if (!connection->is_sending)
		pace_begin(&connection->leaving, uv_now(host->loop), host->drain_ms);
	if (!send_queued(connection))
		return false;
	connection->is_sending = sendable(connection) > 0;
	if (!connection_unsent(connection))
		rpc_peer_sent(&connection->peer);
	outbox_return(&connection->outbox, &host->pool);
	return true;
}

static bool send_now(void *ctx)
{
	struct connection *connection = ctx;

	if (!connection->is_closed && connection_unsent(connection) && !flush(connection))
		connection_break(connection, "it is not there any more");
	return !connection->is_closed && !connection_unsent(connection);
}

/* Whether there is nothing left to answer or to send. */
static bool is_over(const struct connection *connection)
{
	return connection->is_ending && !connection_unsent(connection) && !connection->peer.n_calls &&
	       !connection->has_frames;
}

void connection_queue(struct connection *connection)
{
	fair_queue_add(&connection->host->service->queue, &connection->session.user->loop, &connection->turn);
}

/* The end is work of its user, so that many hang-ups at once take many turns. */
static void queue_end(struct connection *connection)
{
	connection->is_broken = true;
	connection_queue(connection);
}

/* Fds that the client parks: with a part of a frame, or behind replies that it does not read. Others wait for the
 * daemon's own turn, and are charged without a limit: they are two at most. */
static bool may_park(struct connection *connection)
{
	struct limits_table *table = &connection->host->service->limits;
	struct limits_user *user = connection->session.user;
	unsigned n = connection->channel.n_fds,
		 more = n > connection->allowed_fds ? n - connection->allowed_fds : 0;
	struct npumem_error error = {.status = 0};

	if (more && connection->has_frames && !connection->is_paused)
		return true;
	connection->allowed_fds = n;
	if (!more)
		return true;
	limits_give_back(table, user, LIMITS_DESCRIPTORS, more);
	if (limits_check(table, user, LIMITS_DESCRIPTORS, more, &error))
		connection_refuse(connection, NPUMEM_RESOURCE_EXHAUSTED, error.message);
	limits_charge(table, user, LIMITS_DESCRIPTORS, more);
	return !error.status;
}

void connection_settle(struct connection *connection)
{
	struct connection_host *host = connection->host;
	bool reads, was_paused;

	if (connection->is_closed)
		return;
	if (connection->is_broken || !flush(connection) || is_over(connection)) {
		queue_end(connection);
		return;
	}
	connection_charge(connection);
	was_paused = connection->is_paused;
	connection->is_paused = connection_is_full(connection);
	if (was_paused && !connection->is_paused)
		pace_begin(&connection->arriving, uv_now(host->loop), host->frame_ms);
	if (!may_park(connection)) {
		channel_drop_fds(&connection->channel);
		return;
	}
	if (connection->has_frames && !connection->is_paused)
		connection_queue(connection);
	reads = !connection->is_paused && !connection->is_ending;
	if (channel_watch(&connection->channel, reads, connection->is_sending)) {
		queue_end(connection);
	} else if (!connection_unsent(connection) && connection->is_behind) {
		connection->is_behind = false;
		rpc_peer_ready(host->rpc, &connection->peer);
	}
}

static void run_last(struct turns_entry *entry)
{
	connection_settle((struct connection *)((char *)entry - offsetof(struct connection, last)));
}

/* ---- called by rpc ---- */

/* Events wait, and are dropped, before much is kept for a client that does not read. */
static bool is_behind(void *ctx)
{
	struct connection *connection = ctx;

	connection->is_behind = connection_unsent(connection) > UNSENT_BYTES_LEAST;
	return connection->is_behind;
}

/* The reply is sent when the turn ends. */
static void on_delivered(void *ctx, struct buffer *reply)
{
	struct connection *connection = ctx;

	if (outbox_put(&connection->outbox, reply))
		connection_break(connection, "no memory for a reply");
	if (connection->host->store)
		hold_back(connection);
	turns_add_last(connection->host->turns, &connection->last);
}

void connection_init(struct connection *connection)
{
	struct connection_host *host = connection->host;

	input_init(&connection->input, host->heap);
	outbox_init(&connection->outbox, host->heap);
	connection->last.run = run_last;
	connection->peer = (struct rpc_peer){.session = &connection->session,
					     .deliver = on_delivered,
					     .send = send_now,
					     .is_behind = is_behind,
					     .drained = on_drained,
					     .ctx = connection};
	DL_PREPEND(host->connections, connection);
}
