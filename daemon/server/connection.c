/* Frames out of a stream and replies into one.
 *
 * Several requests of one read are answered with one write. A client that does not read its replies is not read
 * from either: what it can make the daemon hold is QUEUED_BYTES_MAX and one reply, and the input of one read.
 * Invariant: reading is on unless paused, ending or closed; at most one write is under way. */
#include "daemon/server/connection.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/server/log.h"
#include "daemon/server/memory.h"
#include "daemon/server/server.h"
#include "proto/frame.h"

enum {
	QUEUED_BYTES_MAX = 1 << 20,
	EVENTS_BYTES_MAX = 64 << 10,
	JOBS_MAX = 256,		 /* requests under way */
	JOB_BYTES_MAX = 4 << 20, /* of their messages and replies: enough to keep every thread busy */
	/* Requests handled before other connections get their turn: a client that floods costs the others no more
	 * than this many short requests. */
	TURN_FRAMES = 16,
	TURN_NS = 200000,	   /* nor than this, where they are not so short */
	SPARE_BYTES_MAX = 2 << 20, /* a larger buffer is not kept for the next reply */
};

static void work(struct connection *connection);

/* ---- closing ---- */

static void on_closed(struct channel *channel)
{
	struct connection *connection = (struct connection *)channel;

	input_deinit(&connection->input);
	outbox_deinit(&connection->outbox);
	heap_free(connection->server->heap, connection);
}

/* Nothing runs for the client any more. */
static void on_drained(void *ctx)
{
	struct connection *connection = ctx;

	log_session(LOG_LEVEL_DEBUG, &connection->session, "ends");
	session_deinit(&connection->session);
	server_remove_ready(connection->server, connection);
	channel_close(&connection->channel, on_closed);
	if (connection->prev)
		connection->prev->next = connection->next;
	else
		connection->server->connections = connection->next;
	if (connection->next)
		connection->next->prev = connection->prev;
	server_closed_one(connection->server);
}

void connection_close(struct connection *connection)
{
	if (connection->is_closed)
		return;
	connection->is_closed = true;
	channel_ignore(&connection->channel);
	rpc_peer_close(&connection->server->rpc, &connection->peer);
}

/* ---- replies ---- */

/* Offers all that is queued to the kernel, as far as it takes it. */
static void flush(struct connection *connection)
{
	const uint8_t *bytes;
	size_t most;

	while (!connection->is_closed && (bytes = outbox_front(&connection->outbox, &most))) {
		ssize_t n = channel_send(&connection->channel, bytes, most);

		if (n < 0)
			connection_close(connection);
		if (n <= 0)
			return;
		outbox_take(&connection->outbox, (size_t)n);
		connection->moved_ms = uv_now(&connection->server->loop);
		if ((size_t)n < most)
			return;
	}
}

static size_t unsent(const struct connection *connection)
{
	return outbox_unsent(&connection->outbox);
}

/* True where the client must read, or wait for what it has asked for, before more is taken from it. */
static bool is_full(const struct connection *connection)
{
	return unsent(connection) > QUEUED_BYTES_MAX || connection->peer.n_jobs >= JOBS_MAX ||
	       connection->peer.job_bytes > JOB_BYTES_MAX || connection->peer.is_reading;
}

/* Events are lost before much is kept for who does not read. */
static bool is_behind(void *ctx)
{
	return unsent(ctx) > EVENTS_BYTES_MAX;
}

/* A reply that was not ready when its request came. */
static void on_delivered(void *ctx, struct buffer *reply)
{
	struct connection *connection = ctx;

	if (outbox_put(&connection->outbox, reply)) {
		log_session(LOG_LEVEL_WARNING, &connection->session, "dropped: no memory for a reply");
		connection_close(connection);
		return;
	}
	if (!connection->is_handling)
		work(connection);
}

/* ---- requests ---- */

static void refuse_frame(struct connection *connection, enum frame_result result)
{
	const char *reason =
		result == FRAME_TOO_LARGE
			? "a frame of more than 16777216 bytes: the connection ends"
			: "a frame whose length has more than 10 bytes, or 64 bits: the connection ends";

	log_session(LOG_LEVEL_WARNING, &connection->session, "%s", reason);
	rpc_refuse(&connection->outbox.tail, NPUMEM_INVALID, reason);
	connection->is_ending = true;
}

static void check_received(struct connection *connection, int status)
{
	if (status) {
		log_session(LOG_LEVEL_WARNING, &connection->session, "dropped: no memory for a reply");
		connection->is_ending = true;
	}
	if (unsent(connection) > QUEUED_BYTES_MAX)
		flush(connection);
	connection->is_paused = is_full(connection);
}

/* Handles the whole frames in `bytes`, as many as there is time for; returns how many bytes are done with. */
static size_t handle_frames(struct connection *connection, const uint8_t *bytes, size_t n)
{
	uint64_t end_ns = uv_hrtime() + TURN_NS;
	unsigned n_handled = 0;
	size_t done = 0;

	connection->is_handling = true;
	connection->has_more = false;
	while (!connection->is_closed && !connection->is_ending && !connection->is_paused) {
		size_t header, message;
		enum frame_result result = frame_parse(bytes + done, n - done, FRAME_BYTES_MAX, &header, &message);

		if (result == FRAME_MORE)
			break;
		if (n_handled++ == TURN_FRAMES || (n_handled > 1 && uv_hrtime() > end_ns)) {
			connection->has_more = true;
			server_add_ready(connection->server, connection);
			break;
		}
		if (result != FRAME_COMPLETE) {
			refuse_frame(connection, result);
			break;
		}
		check_received(connection, rpc_receive(&connection->server->rpc, &connection->peer,
						       bytes + done + header, message, &connection->outbox.tail));
		done += header + message;
	}
	connection->is_handling = false;
	return done;
}

/* Keeps what is left over until more of it comes. */
static void keep(struct connection *connection, const uint8_t *bytes, size_t n)
{
	if (!n || connection->is_ending || connection->is_closed || !input_keep(&connection->input, bytes, n))
		return;
	log_session(LOG_LEVEL_WARNING, &connection->session, "dropped: no memory for a request");
	connection_close(connection);
}

/* A long message, if all of it is there. */
static void handle_long(struct connection *connection)
{
	size_t bytes;
	uint8_t *message = input_take_long(&connection->input, &bytes);

	if (!message)
		return;
	connection->is_handling = true;
	check_received(connection, rpc_receive_long(&connection->server->rpc, &connection->peer, message, bytes,
						    &connection->outbox.tail));
	connection->is_handling = false;
}

static void handle_kept(struct connection *connection)
{
	struct input *input = &connection->input;

	connection->has_more = false;
	if (input->body) {
		handle_long(connection);
		return;
	}
	input_drop(input, handle_frames(connection, input->bytes + input->begin, input->used));
	if (connection->is_ending)
		input_deinit(input);
}

/* What was said of a long message is known, and its like may come. */
static void on_read(void *ctx)
{
	struct connection *connection = ctx;

	if (!connection->is_handling && !connection->is_closed)
		work(connection);
}

/* While it works a connection has the server's spare buffer for its replies, and gives one back when all are sent.
 */
static void lend_spare(struct connection *connection)
{
	struct buffer *spare = &connection->server->spare;

	if (!connection->outbox.tail.room) {
		connection->outbox.tail = *spare;
		buffer_init(spare, connection->server->heap);
	}
}

static void return_one(struct connection *connection, struct buffer *buffer)
{
	struct buffer *spare = &connection->server->spare;

	if (buffer->used)
		return;
	if (!spare->room && buffer->room <= SPARE_BYTES_MAX) {
		*spare = *buffer;
		buffer_init(buffer, connection->server->heap);
	} else {
		buffer_deinit(buffer);
	}
}

static void return_spare(struct connection *connection)
{
	return_one(connection, &connection->outbox.tail);
	return_one(connection, &connection->outbox.sending);
}

/* After anything happened: sends, goes on, or ends. */
static void settle(struct connection *connection)
{
	bool reads;

	flush(connection);
	if (connection->is_closed)
		return;
	if (connection->is_ending && !unsent(connection) && !connection->peer.n_jobs && !connection->has_more) {
		connection_close(connection);
		return;
	}
	reads = !connection->is_paused && !connection->is_ending && !connection->has_more;
	if (channel_watch(&connection->channel, reads, unsent(connection) > 0))
		connection_close(connection);
}

/* The client has read, or something that it asked for is done: takes up what had to wait. */
static void work(struct connection *connection)
{
	lend_spare(connection);
	flush(connection);
	if (!connection->is_closed && connection->is_paused && !is_full(connection)) {
		connection->is_paused = false;
		if (connection->input.used)
			handle_kept(connection);
	}
	settle(connection);
	return_spare(connection);
	if (!connection->is_closed && !unsent(connection))
		rpc_peer_ready(&connection->server->rpc, &connection->peer);
}

/* Where the next bytes go: behind a frame that has begun, else into the server's buffer. */
static uint8_t *room_for_more(struct connection *connection, size_t *room)
{
	uint8_t *bytes = connection->server->input;

	*room = SERVER_INPUT_BYTES;
	if (connection->input.used)
		bytes = input_room(&connection->input, room);
	/* A client that sends as fast as it is read from is read from without end. */
	if (*room > SERVER_INPUT_BYTES)
		*room = SERVER_INPUT_BYTES;
	return bytes;
}

static void take_bytes(struct connection *connection, const uint8_t *bytes, size_t n)
{
	size_t done;

	lend_spare(connection);
	if (connection->input.used) {
		input_add(&connection->input, n);
		handle_kept(connection);
	} else {
		done = handle_frames(connection, bytes, n);
		keep(connection, bytes + done, n - done);
	}
	/* What came with bytes that are all handled was for none of their frames. */
	if (!connection->input.used)
		channel_drop_fds(&connection->channel);
}

static void receive(struct connection *connection)
{
	size_t room = 0;
	uint8_t *to = room_for_more(connection, &room);
	ssize_t n = to ? channel_receive(&connection->channel, to, room) : -ENOMEM;

	if (n == -EAGAIN)
		return;
	if (n < 0) {
		log_session(n == -ENOMEM ? LOG_LEVEL_WARNING : LOG_LEVEL_DEBUG, &connection->session,
			    "dropped: %s", strerror((int)-n));
		connection_close(connection);
		return;
	}
	if (n == 0 && channel_is_gone(&connection->channel)) {
		connection_close(connection);
		return;
	}
	if (n == 0)
		/* The client has shut down only its own half: it still gets its answers. */
		connection->is_ending = true;
	else
		take_bytes(connection, to, (size_t)n);
	settle(connection);
	return_spare(connection);
}

static void on_ready(struct channel *channel, bool readable, bool writable)
{
	struct connection *connection = (struct connection *)channel;

	if (!readable && channel_is_gone(channel)) {
		connection_close(connection);
		return;
	}
	if (writable && !connection->is_closed)
		work(connection);
	if (readable && !connection->is_closed && !connection->is_paused && !connection->is_ending)
		receive(connection);
}

/* ---- opening ---- */

static void enlist(struct connection *connection)
{
	struct server *server = connection->server;

	connection->next = server->connections;
	if (connection->next)
		connection->next->prev = connection;
	server->connections = connection;
}

int connection_open(struct server *server, int fd)
{
	struct npumem_error error = {.status = 0};
	struct connection *connection;
	struct ucred peer;
	socklen_t peer_bytes = sizeof(peer);
	int status;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes)) {
		status = -errno;
		close(fd);
		return status;
	}
	connection = heap_zalloc(server->heap, 1, sizeof(*connection));
	if (!connection) {
		close(fd);
		return -ENOMEM;
	}
	connection->server = server;
	input_init(&connection->input, server->heap);
	outbox_init(&connection->outbox, server->heap);
	if (session_init(&connection->session, &server->service, peer.uid, peer.pid, &error)) {
		log_peer(LOG_LEVEL_WARNING, peer.uid, peer.pid, "turned away: %s", error.message);
		accept_turn_away(fd, error.message);
		heap_free(server->heap, connection);
		return 0;
	}
	status = channel_open(&connection->channel, &server->loop, fd, on_ready);
	if (status) {
		session_deinit(&connection->session);
		heap_free(server->heap, connection);
		return status;
	}
	connection->moved_ms = uv_now(&server->loop);
	connection->memory = memory_source(&connection->channel);
	connection->session.segments_source = &connection->memory;
	connection->peer = (struct rpc_peer){.session = &connection->session,
					     .deliver = on_delivered,
					     .is_behind = is_behind,
					     .drained = on_drained,
					     .read = on_read,
					     .ctx = connection};
	log_session(LOG_LEVEL_DEBUG, &connection->session, "begins");
	enlist(connection);
	settle(connection);
	return 0;
}

void connection_turn(struct connection *connection)
{
	if (connection->is_closed || !connection->has_more)
		return;
	lend_spare(connection);
	handle_kept(connection);
	settle(connection);
	return_spare(connection);
}

void connection_sweep(struct connection *connection, uint64_t now_ms, uint64_t timeout_ms)
{
	if (!unsent(connection))
		connection->moved_ms = now_ms;
	if (connection->is_closed || now_ms - connection->moved_ms < timeout_ms)
		return;
	log_session(LOG_LEVEL_WARNING, &connection->session, "dropped: it does not read its replies");
	connection_close(connection);
}

void connection_end(struct connection *connection)
{
	connection->is_ending = true;
	connection->has_more = false;
	rpc_peer_end_waiting(&connection->server->rpc, &connection->peer);
	if (!connection->is_closed)
		settle(connection);
}
