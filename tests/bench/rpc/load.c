/* Owns one buffer for what was read. A reply is looked at as little as can be: its length, that it tells no
 * failure, and the first handle in it where one is wanted. What is longer than SHORT is counted and not kept. */
#include "tests/bench/rpc/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/frame.h"

enum { BUFFER_BYTES = 256 * 1024, SHORT = 4096, TAG_STATUS = 0x10, TAG_HANDLE = 0x11, TAG_FIRST_HANDLE = 0x09 };

struct reader {
	size_t n_bytes; /* in the buffer */
	size_t skip;	/* of a long reply, still to come */
	unsigned n_replies;
	struct batch *next; /* that the handles go into; NULL: nowhere */
	size_t handle_off;
};

static uint8_t buffer[BUFFER_BYTES];

void load_add(struct batch *batch, const uint8_t *message, size_t n_bytes)
{
	batch->bytes = realloc(batch->bytes, batch->n_bytes + FRAME_HEADER_BYTES_MAX + n_bytes);
	if (!batch->bytes)
		peer_die("no memory");
	batch->n_bytes += frame_header(n_bytes, batch->bytes + batch->n_bytes);
	memcpy(batch->bytes + batch->n_bytes, message, n_bytes);
	batch->n_bytes += n_bytes;
	batch->n_frames++;
}

void load_copy(const struct batch *from, struct batch *to)
{
	*to = *from;
	to->bytes = malloc(from->n_bytes + 1);
	if (!to->bytes)
		peer_die("no memory");
	memcpy(to->bytes, from->bytes, from->n_bytes);
}

void load_free(struct load *load)
{
	for (unsigned i = 0; i < load->n_batches; i++)
		free(load->batches[i].bytes);
	*load = (struct load){0};
}

/* ---- bytes ---- */

static void write_all(int fd, const uint8_t *bytes, size_t n_bytes)
{
	while (n_bytes) {
		ssize_t n = write(fd, bytes, n_bytes);
		if (n <= 0)
			peer_die("a peer takes nothing");
		bytes += n;
		n_bytes -= (size_t)n;
	}
}

void load_send(int fd, const struct batch *batch)
{
	write_all(fd, batch->bytes, batch->n_bytes);
}

struct some {
	int fd;
	uint8_t *bytes;
	size_t n_bytes;
	ssize_t n;
};

static bool try_to_read(void *context)
{
	struct some *some = context;
	some->n = recv(some->fd, some->bytes, some->n_bytes, MSG_DONTWAIT);
	return some->n >= 0;
}

/* `spin` NULL: sleeps at once. */
static size_t read_some(int fd, uint8_t *bytes, size_t n_bytes, struct spin *spin)
{
	struct some some = {fd, bytes, n_bytes, -1};
	ssize_t n = spin && spin_look(spin, try_to_read, &some) ? some.n : read(fd, bytes, n_bytes);
	if (n <= 0)
		peer_die("a peer does not answer");
	return (size_t)n;
}

static const uint8_t *past_varint(const uint8_t *at)
{
	while (*at & 0x80)
		at++;
	return at + 1;
}

/* ---- replies ---- */

/* The first fixed64 of a message, in whatever message it lies that comes first. */
static const uint8_t *handle_in(const uint8_t *at, const uint8_t *end)
{
	while (at < end && *at != TAG_HANDLE && *at != TAG_FIRST_HANDLE)
		at = past_varint(at + 1);
	if (at + 9 > end)
		peer_die("a reply without a handle");
	return at + 1;
}

static void take_reply(struct reader *reader, const uint8_t *message, size_t n_bytes)
{
	const uint8_t *behind_id = past_varint(message + 1);
	if (behind_id < message + n_bytes && *behind_id == TAG_STATUS)
		peer_die("a peer refused a request");
	if (reader->next) {
		size_t frame_bytes = reader->next->n_bytes / reader->next->n_frames;
		memcpy(reader->next->bytes + reader->n_replies * frame_bytes + reader->handle_off,
		       handle_in(behind_id, message + n_bytes), 8);
	}
	reader->n_replies++;
}

/* What the buffer begins with: how many bytes of it are done with, 0 if more are needed. */
static size_t take(struct reader *reader, const uint8_t *at, size_t n_bytes)
{
	size_t header_bytes, message_bytes;
	if (reader->skip) {
		size_t n = reader->skip < n_bytes ? reader->skip : n_bytes;
		reader->skip -= n;
		reader->n_replies += !reader->skip;
		return n;
	}
	enum frame_result result = frame_parse(at, n_bytes, FRAME_BYTES_MAX, &header_bytes, &message_bytes);
	if (result != FRAME_COMPLETE && result != FRAME_MORE)
		peer_die("a reply that is none");
	if (result == FRAME_COMPLETE && message_bytes <= SHORT) {
		take_reply(reader, at + header_bytes, message_bytes);
		return header_bytes + message_bytes;
	}
	if (!header_bytes || message_bytes <= SHORT)
		return 0;
	reader->skip = header_bytes + message_bytes;
	return take(reader, at, n_bytes);
}

static void read_replies(struct reader *reader, int fd, unsigned n, struct spin *spin)
{
	while (reader->n_replies < n) {
		reader->n_bytes += read_some(fd, buffer + reader->n_bytes, BUFFER_BYTES - reader->n_bytes, spin);
		size_t at = 0;
		for (size_t done;
		     at < reader->n_bytes && (done = take(reader, buffer + at, reader->n_bytes - at));)
			at += done;
		memmove(buffer, buffer + at, reader->n_bytes - at);
		reader->n_bytes -= at;
	}
}

static void read_plain(int fd, size_t n_bytes, struct spin *spin)
{
	for (size_t have = 0; have < n_bytes;)
		have += read_some(fd, buffer, n_bytes - have < BUFFER_BYTES ? n_bytes - have : BUFFER_BYTES, spin);
}

static void run_once(struct load *load, int fd)
{
	for (unsigned i = 0; i < load->n_batches; i++) {
		const struct batch *batch = &load->batches[i];
		struct reader reader = {.handle_off = load->handle_off};
		struct batch next = load->batches[1]; /* the bytes are the load's */
		if (load->handle_off && i == 0)
			reader.next = &next;
		load_send(fd, batch);
		if (load->reply_bytes)
			read_plain(fd, load->reply_bytes * batch->n_frames, &load->spin);
		else
			read_replies(&reader, fd, batch->n_frames, &load->spin);
	}
}

/* ---- runs ---- */

void load_repeat(struct load *load, int fd, unsigned n)
{
	errno = 0;
	for (unsigned i = 0; i < n; i++)
		run_once(load, fd);
}

void load_run(struct load *load, int fd, const struct peer *peer, double seconds, struct sample *sample)
{
	uint64_t cpu = peer_cpu_ns(peer), from = peer_now_ns(), end = from + (uint64_t)(seconds * 1e9), now;
	uint64_t n = 0;
	errno = 0;
	do {
		run_once(load, fd);
		n += load->counts;
		now = peer_now_ns();
	} while (now < end);
	sample->us = (double)(now - from) / 1e3 / (double)n;
	sample->cpu_us = (double)(peer_cpu_ns(peer) - cpu) / 1e3 / (double)n;
}

uint8_t *load_ask(int fd, const struct batch *frame, size_t *n_bytes)
{
	size_t header_bytes, have = 0;
	uint8_t *reply = malloc(FRAME_BYTES_MAX);
	if (!reply)
		peer_die("no memory");
	load_send(fd, frame);
	while (frame_parse(reply, have, FRAME_BYTES_MAX, &header_bytes, n_bytes) == FRAME_MORE)
		have += read_some(fd, reply + have, FRAME_BYTES_MAX - have, NULL);
	memmove(reply, reply + header_bytes, *n_bytes);
	return reply;
}
