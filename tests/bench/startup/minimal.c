/* The least that a daemon of libuv and protobuf-c is: bench_minimal SOCKET unpacks each frame and sends it back as
 * it packs it. */
#include <stdlib.h>
#include <uv.h>

#include "floor.pb-c.h"
#include "proto/frame.h"

static uint8_t in[4096], out[4096];

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *buffer)
{
	(void)handle;
	(void)wanted;
	*buffer = uv_buf_init((char *)in, sizeof(in));
}

static void on_bytes(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
	size_t header_bytes, message_bytes;
	(void)buffer;
	if (n < 0 || frame_parse(in, (size_t)n, sizeof(in) / 2, &header_bytes, &message_bytes) != FRAME_COMPLETE) {
		uv_close((uv_handle_t *)stream, (uv_close_cb)(void *)free);
		return;
	}
	Floor__Echo *echo = floor__echo__unpack(NULL, message_bytes, in + header_bytes);
	if (!echo)
		abort();
	size_t bytes = floor__echo__get_packed_size(echo), header = frame_header(bytes, out);
	uv_buf_t reply = uv_buf_init((char *)out, (unsigned)(header + floor__echo__pack(echo, out + header)));
	uv_try_write(stream, &reply, 1);
	floor__echo__free_unpacked(echo, NULL);
}

static void on_connection(uv_stream_t *listener, int status)
{
	uv_pipe_t *pipe = malloc(sizeof(*pipe));
	if (status || !pipe)
		abort();
	uv_pipe_init(listener->loop, pipe, 0);
	uv_accept(listener, (uv_stream_t *)pipe);
	uv_read_start((uv_stream_t *)pipe, on_room, on_bytes);
}

int main(int argc, char **argv)
{
	uv_pipe_t listener;
	uv_loop_t *loop = uv_default_loop();
	uv_pipe_init(loop, &listener, 0);
	if (argc != 2 || uv_pipe_bind(&listener, argv[1]) ||
	    uv_listen((uv_stream_t *)&listener, 16, on_connection))
		return 1;
	return uv_run(loop, UV_RUN_DEFAULT);
}
