/* The floor that the daemon's speed is told against: bench_floor SOCKET. libuv and protobuf-c, and nothing
 * between: each frame is unpacked, and the reply that the connection's script has for its call is packed with its
 * id.
 *
 * As fast as the two libraries allow: unpacking takes its memory from one buffer, and all replies to what one read
 * brought leave in one write. It trusts its client. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "floor.pb-c.h"
#include "proto/frame.h"
#include "proto/npumem.pb-c.h"

enum { BUFFER_BYTES = 256 * 1024, REPLY_BYTES_MAX = 32 * 1024, CALLS = 64 };

struct connection {
	uv_pipe_t pipe;
	Floor__Script *script; /* NULL before the first frame */
	ProtobufCMessage *replies[CALLS];
	size_t n_in, n_out;
	uint8_t in[BUFFER_BYTES], out[BUFFER_BYTES];
};

struct left_over {
	uv_write_t write;
	uint8_t bytes[];
};

static uint8_t unpacked[BUFFER_BYTES];
static size_t n_unpacked;

static void die(const char *what)
{
	fprintf(stderr, "bench_floor: %s\n", what);
	exit(1);
}

static void *take(void *context, size_t bytes)
{
	(void)context;
	void *memory = unpacked + n_unpacked;
	n_unpacked += (bytes + 15) & ~(size_t)15;
	return n_unpacked <= sizeof(unpacked) ? memory : NULL;
}

static void give(void *context, void *memory)
{
	(void)context;
	(void)memory;
}

static ProtobufCAllocator allocator = {take, give, NULL};

/* ---- replies ---- */

static void read_script(struct connection *connection, const uint8_t *bytes, size_t n_bytes)
{
	connection->script = floor__script__unpack(NULL, n_bytes, bytes);
	if (!connection->script)
		die("no script");
	for (size_t i = 0; i < connection->script->n_replies; i++) {
		const Floor__Reply *reply = connection->script->replies[i];
		const ProtobufCMessageDescriptor *kind =
			connection->script->flat ? &floor__echo__descriptor : &npumem__v1__response__descriptor;
		connection->replies[reply->call % CALLS] =
			protobuf_c_message_unpack(kind, NULL, reply->message.len, reply->message.data);
	}
}

/* The reply to a frame, with its id. */
static ProtobufCMessage *reply_to(struct connection *connection, const uint8_t *bytes, size_t n_bytes)
{
	n_unpacked = 0;
	if (connection->script->flat) {
		const Floor__Echo *echo = floor__echo__unpack(&allocator, n_bytes, bytes);
		Floor__Echo *reply = echo ? (Floor__Echo *)connection->replies[echo->call % CALLS] : NULL;
		if (reply)
			reply->id = echo->id;
		return (ProtobufCMessage *)reply;
	}
	const Npumem__V1__Request *request = npumem__v1__request__unpack(&allocator, n_bytes, bytes);
	Npumem__V1__Response *reply =
		request ? (Npumem__V1__Response *)connection->replies[request->call_case % CALLS] : NULL;
	if (reply)
		reply->id = request->id;
	return (ProtobufCMessage *)reply;
}

static void on_written(uv_write_t *write, int status)
{
	(void)status;
	free(write);
}

static void flush(struct connection *connection)
{
	uv_buf_t buffer = uv_buf_init((char *)connection->out, (unsigned)connection->n_out);
	int written = connection->n_out ? uv_try_write((uv_stream_t *)connection, &buffer, 1) : 0;
	size_t done = written > 0 ? (size_t)written : 0, rest = connection->n_out - done;
	connection->n_out = 0;
	if (!rest)
		return;
	struct left_over *left = malloc(sizeof(*left) + rest);
	if (!left)
		die("no memory");
	memcpy(left->bytes, connection->out + done, rest);
	buffer = uv_buf_init((char *)left->bytes, (unsigned)rest);
	uv_write(&left->write, (uv_stream_t *)connection, &buffer, 1, on_written);
}

static void answer(struct connection *connection, const uint8_t *bytes, size_t n_bytes)
{
	if (!connection->script) {
		read_script(connection, bytes, n_bytes);
		return;
	}
	const ProtobufCMessage *reply = reply_to(connection, bytes, n_bytes);
	if (!reply)
		die("a frame that the script has no reply for");
	size_t reply_bytes = protobuf_c_message_get_packed_size(reply);
	if (reply_bytes > REPLY_BYTES_MAX)
		die("a reply too long");
	if (connection->n_out + FRAME_HEADER_BYTES_MAX + reply_bytes > BUFFER_BYTES)
		flush(connection);
	connection->n_out += frame_header(reply_bytes, connection->out + connection->n_out);
	connection->n_out += protobuf_c_message_pack(reply, connection->out + connection->n_out);
}

/* ---- connections ---- */

static void on_closed(uv_handle_t *handle)
{
	free(handle);
}

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *buffer)
{
	struct connection *connection = (struct connection *)handle;
	(void)wanted;
	*buffer = uv_buf_init((char *)connection->in + connection->n_in,
			      (unsigned)(BUFFER_BYTES - connection->n_in));
}

static void on_bytes(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
	struct connection *connection = (struct connection *)stream;
	(void)buffer;
	if (n < 0) {
		uv_close((uv_handle_t *)stream, on_closed);
		return;
	}
	connection->n_in += (size_t)n;
	size_t at = 0, header_bytes, message_bytes;
	while (frame_parse(connection->in + at, connection->n_in - at, BUFFER_BYTES / 2, &header_bytes,
			   &message_bytes) == FRAME_COMPLETE) {
		answer(connection, connection->in + at + header_bytes, message_bytes);
		at += header_bytes + message_bytes;
	}
	if (at && at < connection->n_in)
		memmove(connection->in, connection->in + at, connection->n_in - at);
	connection->n_in -= at;
	flush(connection);
}

static void on_connection(uv_stream_t *listener, int status)
{
	struct connection *connection = malloc(sizeof(*connection));
	if (status || !connection)
		die("no connection");
	connection->script = NULL;
	connection->n_in = connection->n_out = 0;
	memset(connection->replies, 0, sizeof(connection->replies));
	uv_pipe_init(listener->loop, &connection->pipe, 0);
	uv_accept(listener, (uv_stream_t *)connection);
	uv_read_start((uv_stream_t *)connection, on_room, on_bytes);
}

int main(int argc, char **argv)
{
	uv_pipe_t listener;
	uv_loop_t *loop = uv_default_loop();
	uv_pipe_init(loop, &listener, 0);
	if (argc != 2 || uv_pipe_bind(&listener, argv[1]) ||
	    uv_listen((uv_stream_t *)&listener, 16, on_connection))
		die("usage: bench_floor SOCKET (of a path that is free)");
	return uv_run(loop, UV_RUN_DEFAULT);
}
