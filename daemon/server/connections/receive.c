/* Short frames are handled where they were received, behind the part of one that was kept; long messages are
 * received into memory of their own, which is charged before it is taken. A message above the uid's limit is
 * dropped as it comes, and its request refused. Invariant: the kept bytes are either whole frames (has_frames), or
 * a part of one. */
#include "daemon/server/connections/receive.h"

#include <errno.h>
#include <string.h>

#include "daemon/server/process/log.h"

enum {
	/* Requests handled before other work that is queued: a client that floods costs its user's other
	 * connections no more than this many short requests. */
	SHARE_FRAMES = 16,
	SHARE_NS = 25000, /* nor more time; after that the kernel is asked for other connections with input */
	BODY_READ_BYTES =
		256
		<< 10, /* at most: a client that sends as fast as it is read from would be read from without end */
};

/* ---- whole messages ---- */

static void refuse_length(struct connection *connection, enum frame_result result)
{
	const char *reason =
		result == FRAME_TOO_LARGE
			? "a frame of more than 16777216 bytes: the connection ends"
			: "a frame whose length has more than 10 bytes, or 64 bits: the connection ends";

	connection_refuse(connection, NPUMEM_INVALID, reason);
}

static void check_received(struct connection *connection, int status)
{
	if (status)
		connection_break(connection, "no memory for a reply");
	connection->is_paused = connection_is_full(connection);
}

/* Whether a connection's share is used up. The clock is read here, as a request that is held reads none. */
static bool is_over(const struct connection_host *host, unsigned n_handled, uint64_t *end_ns)
{
	uint64_t now_ns;

	if (!n_handled)
		return false;
	if (n_handled >= SHARE_FRAMES && !fair_queue_is_empty(&host->service->queue))
		return true;
	now_ns = uv_hrtime();
	if (n_handled == 1)
		*end_ns = now_ns + SHARE_NS;
	return now_ns >= *end_ns;
}

/* Handles the whole frames in `bytes`, up to a share; returns the number of handled bytes. */
static size_t handle_frames(struct connection *connection, const uint8_t *bytes, size_t n)
{
	unsigned n_handled = 0;
	uint64_t end_ns = 0;
	size_t done = 0;

	connection->has_frames = false;
	while (!connection->is_closed && !connection->is_broken) {
		size_t header, message;
		enum frame_result result = frame_parse(bytes + done, n - done, FRAME_BYTES_MAX, &header, &message);

		if (result == FRAME_MORE)
			break;
		if (connection->is_paused || is_over(connection->host, n_handled, &end_ns)) {
			connection->has_frames = true;
			break;
		}
		n_handled++;
		if (result != FRAME_COMPLETE) {
			refuse_length(connection, result);
			return n;
		}
		check_received(connection, rpc_receive(connection->host->rpc, &connection->peer,
						       bytes + done + header, message));
		done += header + message;
	}
	return done;
}

static void handle_body(struct connection *connection)
{
	size_t n;
	uint8_t *message = input_take_body(&connection->input, &n);

	if (!message)
		return;
	/* Its bytes are the request's now. */
	connection_charge(connection);
	check_received(connection, rpc_receive_owned(connection->host->rpc, &connection->peer, message, n));
}

/* ---- parts ---- */

/* Whether the uid may hold so many bytes more. 0; RESOURCE_EXHAUSTED. */
static int check_limit(const struct connection *connection, size_t more, struct npumem_error *error)
{
	return limits_check(&connection->host->service->limits, connection->session.user, LIMITS_REQUEST_BYTES,
			    more, error);
}

/* Refuses a request of which only the beginning is kept. */
static void refuse_body(struct connection *connection, const struct npumem_error *error, const uint8_t *head,
			size_t n)
{
	check_received(connection, rpc_refuse_part(connection->host->rpc, &connection->peer, error, head, n));
}

static void begin_body(struct connection *connection, size_t body, const uint8_t *bytes, size_t n)
{
	struct input *input = &connection->input;
	struct npumem_error error = {.status = 0};

	if (check_limit(connection, input_body_room(body, n), &error)) {
		refuse_body(connection, &error, bytes, n);
		input->skip = body - n;
	} else if (input_begin_body(input, body, bytes, n)) {
		connection_break(connection, "no memory for a request");
	}
}

/* Keeps the rest until more of it comes, or for the next turn. */
static void keep_rest(struct connection *connection, const uint8_t *bytes, size_t n)
{
	size_t header, body;

	if (!n || connection->is_ending || connection->is_broken || connection->is_closed)
		return;
	body = connection->has_frames ? 0 : input_long(bytes, n, &header);
	if (body)
		begin_body(connection, body, bytes + header, n - header);
	else if (input_keep(&connection->input, bytes, n))
		connection_break(connection, "no memory for a request");
}

static void begin_arriving(struct connection *connection)
{
	pace_begin(&connection->arriving, uv_now(connection->host->loop), connection->host->frame_ms);
}

static void handle_kept(struct connection *connection)
{
	struct input *input = &connection->input, rest;

	size_t done = handle_frames(connection, input->bytes + input->begin, input->used);

	if (connection->is_ending)
		return;
	input_drop(input, done);
	if (connection->has_frames || input_is_empty(input))
		return;
	/* A part of a frame, in memory that is too large for it. */
	rest = *input;
	input_init(input, rest.heap);
	keep_rest(connection, rest.bytes + rest.begin, rest.used);
	input_deinit(&rest);
	begin_arriving(connection);
}

/* ---- bytes ---- */

/* n bytes of a long message have come. */
static void add_body(struct connection *connection, size_t n)
{
	input_add(&connection->input, n);
	handle_body(connection);
}

/* n bytes have come behind the kept ones; all of them are at host->input. */
static void add_frames(struct connection *connection, size_t n)
{
	struct input *input = &connection->input;
	uint8_t *bytes = connection->host->input;
	size_t kept = input->used, done;

	if (kept)
		memcpy(bytes, input->bytes + input->begin, kept);
	input_deinit(input);
	done = handle_frames(connection, bytes, kept + n);
	if (done || !kept)
		begin_arriving(connection);
	keep_rest(connection, bytes + done, kept + n - done);
}

/* The place for the next bytes of a long message; NULL: none. */
static uint8_t *find_body_room(struct connection *connection, size_t *room)
{
	struct input *input = &connection->input;
	struct npumem_error error;
	size_t growth = input_growth(input);
	uint8_t *bytes;

	npumem_error_clear(&error);
	if (growth && check_limit(connection, growth, &error)) {
		refuse_body(connection, &error, input->bytes, input->used);
		input_skip_body(input);
		return connection->host->input;
	}
	bytes = input_room(input, room);
	*room = *room < BODY_READ_BYTES ? *room : BODY_READ_BYTES;
	return bytes;
}

/* The place for the next bytes; NULL: none. */
static uint8_t *find_room(struct connection *connection, size_t *room)
{
	struct input *input = &connection->input;
	uint8_t *bytes = connection->host->input;

	*room = CONNECTION_READ_BYTES;
	if (input->body)
		bytes = find_body_room(connection, room);
	else if (!input->skip)
		bytes += input->used;
	if (input->skip && *room > input->skip)
		*room = input->skip;
	return bytes;
}

static void add_received(struct connection *connection, size_t n)
{
	struct input *input = &connection->input;

	pace_moved(&connection->arriving, n, uv_now(connection->host->loop), connection->host->frame_ms);
	if (input->skip)
		input->skip -= n;
	else if (input->body)
		add_body(connection, n);
	else
		add_frames(connection, n);
	/* All frames are handled, and none has taken these fds. */
	if (input_is_empty(input))
		channel_drop_fds(&connection->channel);
}

static void refuse_fds(struct connection *connection)
{
	struct npumem_error error = {.status = 0};

	if (closer_may_pass(connection->channel.user)) {
		connection_refuse(
			connection, NPUMEM_INVALID,
			"more file descriptors than a request takes, or than the daemon has room for: the "
			"connection ends");
	} else {
		closer_refuse(connection->channel.user, &error);
		connection_refuse(connection, error.status, error.message);
	}
	channel_drop_fds(&connection->channel);
}

static void take(struct connection *connection, size_t n)
{
	if (connection->channel.has_lost_fds)
		refuse_fds(connection);
	else
		add_received(connection, n);
}

static void receive(struct connection *connection)
{
	size_t room = 0;
	uint8_t *to = find_room(connection, &room);
	ssize_t n = to ? channel_receive(&connection->channel, to, room) : -ENOMEM;

	if (n == -EAGAIN)
		return;
	if (n < 0) {
		log_session(n == -ENOMEM ? LOG_LEVEL_WARNING : LOG_LEVEL_DEBUG, &connection->session,
			    "dropped: %s", strerror((int)-n));
		connection->is_broken = true;
	} else if (n == 0) {
		/* The client may have shut down only its own half: then it still gets its answers. */
		connection->is_broken = channel_is_gone(&connection->channel);
		connection->is_ending = true;
		input_deinit(&connection->input);
	} else {
		workers_hear(connection->host->workers, connection->session.user);
		take(connection, (size_t)n);
	}
}

void receive_turn(struct connection *connection)
{
	if (connection->is_closed || connection->is_broken)
		return;
	turns_add_last(connection->host->turns, &connection->last);
	if (connection->is_ending || connection->is_paused)
		return;
	outbox_borrow(&connection->outbox, &connection->host->pool);
	if (connection->has_frames)
		handle_kept(connection);
	else if (connection->is_readable)
		receive(connection);
	connection->is_readable = false;
	if (connection->has_frames && !connection->is_paused)
		connection_queue(connection);
}

bool receive_is_in_time(const struct connection *connection, uint64_t now_ms)
{
	return connection->has_frames || connection->is_paused || input_is_empty(&connection->input) ||
	       !pace_is_over(&connection->arriving, now_ms);
}
