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
#include "daemon/server/server.h"
#include "proto/frame.h"

enum {
	QUEUED_BYTES_MAX = 1 << 20,
	INPUT_LEAST_BYTES = 64 << 10,
	JOBS_MAX = 256, /* requests under way */
	JOB_BYTES_MAX = 4 << 20, /* of their messages and replies: enough to keep every thread busy */
	SPARE_BYTES_MAX = 2 << 20, /* a larger buffer is not kept for the next reply */
};

static void read_more(struct connection *connection);
static void work(struct connection *connection);

/* ---- closing ---- */

static void on_closed(uv_handle_t *handle)
{
	struct connection *connection = handle->data;

	heap_free(connection->server->heap, connection->input);
	buffer_deinit(&connection->queued);
	buffer_deinit(&connection->sending);
	heap_free(connection->server->heap, connection);
}

/* Nothing runs for the client any more. */
static void on_drained(void *ctx)
{
	struct connection *connection = ctx;

	log_line(LOG_LEVEL_DEBUG, "session %" PRIu64 " ends", connection->session.id);
	session_deinit(&connection->session);
	uv_close((uv_handle_t *)&connection->pipe, on_closed);
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
	uv_read_stop((uv_stream_t *)&connection->pipe);
	rpc_peer_close(&connection->server->rpc, &connection->peer);
}

/* ---- replies ---- */

static void on_written(uv_write_t *write, int status)
{
	struct connection *connection = write->data;

	if (connection->is_closed)
		return;
	connection->is_sending = false;
	buffer_deinit(&connection->sending);
	if (status < 0) {
		connection_close(connection);
		return;
	}
	work(connection);
}

static void send_rest(struct connection *connection, size_t sent)
{
	struct buffer queued = connection->queued;
	uv_buf_t rest;

	connection->queued = connection->sending;
	connection->sending = queued;
	rest = uv_buf_init((char *)connection->sending.bytes + sent, (unsigned)(connection->sending.used - sent));
	connection->write.data = connection;
	connection->is_sending = true;
	if (uv_write(&connection->write, (uv_stream_t *)&connection->pipe, &rest, 1, on_written))
		connection_close(connection);
}

/* Offers the queue to the kernel; what it does not take is sent when it can. */
static void flush(struct connection *connection)
{
	struct buffer *queued = &connection->queued;
	uv_buf_t all;
	int sent;

	if (connection->is_closed || connection->is_sending || !queued->used)
		return;
	all = uv_buf_init((char *)queued->bytes, (unsigned)queued->used);
	sent = uv_try_write((uv_stream_t *)&connection->pipe, &all, 1);
	if (sent == (int)queued->used)
		queued->used = 0;
	else if (sent >= 0 || sent == UV_EAGAIN)
		send_rest(connection, sent > 0 ? (size_t)sent : 0);
	else
		connection_close(connection);
}

static size_t unsent(const struct connection *connection)
{
	return connection->queued.used + connection->sending.used;
}

/* True where the client must read, or wait for what it has asked for, before more is taken from it. */
static bool is_full(const struct connection *connection)
{
	return unsent(connection) > QUEUED_BYTES_MAX || connection->peer.n_jobs >= JOBS_MAX ||
	       connection->peer.job_bytes > JOB_BYTES_MAX;
}

/* A reply that was not ready when its request came. */
static void on_delivered(void *ctx, struct buffer *reply)
{
	struct connection *connection = ctx;
	struct buffer *queued = &connection->queued;

	if (!queued->used) {
		struct buffer empty = *queued;

		*queued = *reply;
		*reply = empty;
	} else if (buffer_reserve(queued, reply->used)) {
		connection_close(connection);
		return;
	} else {
		memcpy(queued->bytes + queued->used, reply->bytes, reply->used);
		queued->used += reply->used;
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

	log_line(LOG_LEVEL_DEBUG, "session %" PRIu64 ": %s", connection->session.id, reason);
	rpc_refuse(&connection->queued, NPUMEM_INVALID, reason);
	connection->is_ending = true;
}

/* Handles the whole frames in `bytes`; returns how many bytes are done with. */
static size_t handle_frames(struct connection *connection, const uint8_t *bytes, size_t n)
{
	size_t done = 0;

	connection->is_handling = true;
	while (!connection->is_closed && !connection->is_ending && !connection->is_paused) {
		size_t header, message;
		enum frame_result result = frame_parse(bytes + done, n - done, FRAME_BYTES_MAX, &header, &message);

		if (result == FRAME_MORE)
			break;
		if (result != FRAME_COMPLETE) {
			refuse_frame(connection, result);
			break;
		}
		if (rpc_receive(&connection->server->rpc, &connection->peer, bytes + done + header, message,
				&connection->queued)) {
			log_line(LOG_LEVEL_WARNING, "session %" PRIu64 ": no memory for a reply",
				 connection->session.id);
			connection->is_ending = true;
		}
		done += header + message;
		if (unsent(connection) > QUEUED_BYTES_MAX)
			flush(connection);
		connection->is_paused = is_full(connection);
	}
	connection->is_handling = false;
	return done;
}

/* Keeps what is left over until more of it comes. */
static void keep(struct connection *connection, const uint8_t *bytes, size_t n)
{
	size_t room = n > INPUT_LEAST_BYTES ? n : INPUT_LEAST_BYTES;

	if (!n || connection->is_ending || connection->is_closed)
		return;
	connection->input = heap_alloc(connection->server->heap, room);
	if (!connection->input) {
		connection_close(connection);
		return;
	}
	memcpy(connection->input, bytes, n);
	connection->input_used = n;
	connection->input_room = room;
}

static void handle_kept(struct connection *connection)
{
	size_t done = handle_frames(connection, connection->input, connection->input_used);

	connection->input_used -= done;
	if (connection->input_used && !connection->is_ending) {
		if (done)
			memmove(connection->input, connection->input + done, connection->input_used);
		return;
	}
	heap_free(connection->server->heap, connection->input);
	connection->input = NULL;
	connection->input_used = connection->input_room = 0;
}

/* While it works a connection has the server's spare buffer for its replies, and gives one back when all are sent.
 */
static void lend_spare(struct connection *connection)
{
	struct buffer *spare = &connection->server->spare;

	if (!connection->queued.room) {
		connection->queued = *spare;
		buffer_init(spare, connection->server->heap);
	}
}

static void return_spare(struct connection *connection)
{
	struct buffer *spare = &connection->server->spare;

	if (connection->queued.used)
		return;
	if (!spare->room && connection->queued.room <= SPARE_BYTES_MAX) {
		*spare = connection->queued;
		buffer_init(&connection->queued, connection->server->heap);
	} else {
		buffer_deinit(&connection->queued);
	}
}

/* After anything happened: sends, goes on, or ends. */
static void settle(struct connection *connection)
{
	flush(connection);
	if (connection->is_closed)
		return;
	if (connection->is_ending && !unsent(connection) && !connection->peer.n_jobs)
		connection_close(connection);
	else if (connection->is_paused || connection->is_ending)
		uv_read_stop((uv_stream_t *)&connection->pipe);
}

/* The client has read, or something that it asked for is done: takes up what had to wait. */
static void work(struct connection *connection)
{
	lend_spare(connection);
	flush(connection);
	if (!connection->is_closed && connection->is_paused && !is_full(connection)) {
		connection->is_paused = false;
		if (connection->input_used)
			handle_kept(connection);
		if (!connection->is_closed && !connection->is_paused && !connection->is_ending)
			read_more(connection);
	}
	settle(connection);
	return_spare(connection);
}

/* Room grows with what has come, not with what was announced, and ends where the frame ends. */
static bool grow_input(struct connection *connection)
{
	size_t header, message, room = 2 * connection->input_room;
	uint8_t *grown;

	if (connection->input_used < connection->input_room)
		return true;
	if (frame_parse(connection->input, connection->input_used, FRAME_BYTES_MAX, &header, &message) ==
		    FRAME_MORE &&
	    header && room > header + message)
		room = header + message;
	grown = heap_alloc(connection->server->heap, room);
	if (!grown)
		return false;
	memcpy(grown, connection->input, connection->input_used);
	heap_free(connection->server->heap, connection->input);
	connection->input = grown;
	connection->input_room = room;
	return true;
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
	struct connection *connection = handle->data;

	(void)suggested;
	if (!connection->input_used)
		*buffer = uv_buf_init((char *)connection->server->input, SERVER_INPUT_BYTES);
	else if (grow_input(connection))
		*buffer = uv_buf_init((char *)connection->input + connection->input_used,
				      (unsigned)(connection->input_room - connection->input_used));
	else
		*buffer = uv_buf_init(NULL, 0);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
	struct connection *connection = stream->data;

	if (n == 0)
		return;
	if (n == UV_EOF) {
		/* The client may have shut down only its own half: it still gets its answers. */
		connection->is_ending = true;
	} else if (n < 0) {
		log_line(LOG_LEVEL_DEBUG, "session %" PRIu64 ": %s", connection->session.id, uv_strerror((int)n));
		connection_close(connection);
		return;
	} else {
		lend_spare(connection);
		if (connection->input_used) {
			connection->input_used += (size_t)n;
			handle_kept(connection);
		} else {
			const uint8_t *bytes = (const uint8_t *)buffer->base;
			size_t done = handle_frames(connection, bytes, (size_t)n);

			keep(connection, bytes + done, (size_t)n - done);
		}
	}
	settle(connection);
	return_spare(connection);
}

static void read_more(struct connection *connection)
{
	if (uv_read_start((uv_stream_t *)&connection->pipe, on_alloc, on_read))
		connection_close(connection);
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
	if (!connection || uv_pipe_init(&server->loop, &connection->pipe, 0)) {
		heap_free(server->heap, connection);
		close(fd);
		return -ENOMEM;
	}
	connection->server = server;
	connection->pipe.data = connection;
	buffer_init(&connection->queued, server->heap);
	buffer_init(&connection->sending, server->heap);
	status = uv_pipe_open(&connection->pipe, fd);
	if (status) {
		close(fd);
		uv_close((uv_handle_t *)&connection->pipe, on_closed);
		return status;
	}
	session_init(&connection->session, &server->service, peer.uid, peer.pid);
	connection->peer = (struct rpc_peer){
		.session = &connection->session, .deliver = on_delivered, .drained = on_drained, .ctx = connection};
	log_line(LOG_LEVEL_DEBUG, "session %" PRIu64 " of uid %u, pid %d", connection->session.id,
		 (unsigned)peer.uid, (int)peer.pid);
	enlist(connection);
	read_more(connection);
	return 0;
}

void connection_end(struct connection *connection)
{
	connection->is_ending = true;
	settle(connection);
}
