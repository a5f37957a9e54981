/* The engine of a connection: what is sent, received and handed out when. Invariant: see engine.h.
 * The peer is a process like any other: whatever it sends, the worst that comes of it is UNAVAILABLE.
 * Does not know what a request means. */
#define _GNU_SOURCE /* F_DUPFD_CLOEXEC */
#include "client/lib/connection/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/lib/connection/clock.h"
#include "client/lib/connection/reply.h"
#include "client/lib/connection/spawn.h"
#include "client/lib/connection/spin.h"

enum {
	ENGINE_QUEUE_BYTES = 64 << 10, /* more than this is not left for the next turn */
	ENGINE_TURN_BYTES = 32 << 20,  /* read in one turn, so that a flood cannot hold the caller */
	ENGINE_LEND_LEAST = 4 << 10,   /* of a write's data: less is copied sooner than written from elsewhere */
};

/* ---- beginning and end ---- */

static void *budget_take(void *ctx, size_t bytes)
{
	return memory_alloc(((struct npumem *)ctx)->memory, bytes);
}

static void budget_release(void *ctx, void *memory)
{
	memory_free(((struct npumem *)ctx)->memory, memory);
}

int engine_new(const struct memory *memory, int fd, const struct npumem_options *options, struct npumem **out)
{
	struct npumem *npumem = memory_alloc(memory, sizeof(*npumem));
	if (!npumem) {
		close(fd);
		return -ENOMEM;
	}
	*npumem = (struct npumem){.memory = memory, .fd = fd, .child_log = -1, .next_deadline = CLOCK_NEVER};
	npumem->call_ms = options->call_ms;
	spin_init(&npumem->spin, spin_most_ns(options->spin_us));
	budget_init(&npumem->budget, budget_take, budget_release, npumem);
	*out = npumem;
	return 0;
}

/* Tells every waiting request why there will be no answer. Callbacks may try to send, and are refused. */
static void abandon(struct npumem *npumem)
{
	npumem->dispatching = true;
	while (npumem->first_request)
		request_fail(npumem->first_request, &npumem->broken);
	npumem->dispatching = false;
}

static void destroy(struct npumem *npumem)
{
	const struct memory *memory = npumem->memory;
	pid_t child = npumem->child;
	int log = npumem->child_log;
	npumem->closing = true;
	if (!npumem->broken.status)
		npumem_error_set(&npumem->broken, NPUMEM_CANCELLED, "the connection was closed by its user");
	abandon(npumem);
	close(npumem->fd);
	result_end_all(&npumem->results);
	while (npumem->free_requests) {
		struct npumem_request *request = npumem->free_requests;
		npumem->free_requests = request->next;
		memory_free(memory, request);
	}
	budget_deinit(&npumem->budget);
	pending_deinit(&npumem->pending, memory);
	outbox_deinit(&npumem->out, memory);
	inbox_deinit(&npumem->in, memory);
	memory_free(memory, npumem);
	if (child > 0)
		spawn_reap(child);
	if (log >= 0)
		close(log);
}

void engine_close(struct npumem *npumem)
{
	npumem->closing = true;
	if (!npumem->dispatching)
		destroy(npumem);
}

int engine_break(struct npumem *npumem, const char *format, ...)
{
	if (npumem->broken.status)
		return NPUMEM_UNAVAILABLE;
	char why[NPUMEM_MESSAGE_BYTES / 2];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(why, sizeof(why), format, arguments);
	va_end(arguments);
	return npumem_error_set(&npumem->broken, NPUMEM_UNAVAILABLE, "%s", why);
}

/* The connection was closed under us: by the daemon's reason if it sent one. */
static int ended(struct npumem *npumem, int err)
{
	if (npumem->ending.status)
		return engine_break(npumem, "the daemon ended the connection: %.200s", npumem->ending.message);
	/* The kernel says so where the daemon left requests unread. */
	if (err == ECONNRESET || err == EPIPE)
		err = 0;
	if (err)
		return engine_break(npumem, "the connection to the daemon broke: %s", strerror(err));
	if (inbox_is_within(&npumem->in))
		return engine_break(npumem, "the daemon closed the connection in the middle of an answer");
	return engine_break(npumem, "the daemon closed the connection");
}

int engine_error(const struct npumem *npumem, struct npumem_error *error)
{
	if (error)
		*error = npumem->broken;
	return npumem->broken.status;
}

/* ---- sending ---- */

static void write_out(struct npumem *npumem)
{
	if (!npumem->no_more_writes && outbox_write(&npumem->out, npumem->memory, npumem->fd))
		npumem->no_more_writes = true;
}

/* Room for the message's bytes, its pieces and its answer. */
static int reserve(struct npumem *npumem, size_t bytes, const struct request_extra *extra)
{
	unsigned n_pieces = (extra->data != NULL) + extra->has_fd;
	return pending_reserve(&npumem->pending, npumem->memory) ||
	       outbox_reserve(&npumem->out, npumem->memory, bytes + FRAME_HEADER_BYTES_MAX + PAYLOAD_HEAD_BYTES,
			      n_pieces);
}

int engine_send(struct npumem *npumem, struct npumem_request *request, Npumem__V1__Request *message,
		const struct request_extra *extra, struct npumem_error *error)
{
	struct buffer *out = &npumem->out.bytes;
	bool lends = extra->data_bytes >= ENGINE_LEND_LEAST;
	int fd = -1;
	if (npumem->broken.status)
		return engine_error(npumem, error);
	message->id = npumem->last_id + 1;
	if (extra->data_bytes && !lends)
		message->write->data = (ProtobufCBinaryData){extra->data_bytes, (uint8_t *)(uintptr_t)extra->data};
	size_t here = npumem__v1__request__get_packed_size(message);
	size_t bytes = lends ? payload_write_size(message, extra->data_bytes) : here;
	if (bytes > FRAME_BYTES_MAX)
		return npumem_error_set(error, NPUMEM_INVALID, "a request of %zu bytes is over the %zu of a frame",
					bytes, FRAME_BYTES_MAX);
	if (reserve(npumem, here, extra))
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
					"no memory in this process for a request of %zu bytes", bytes);
	if (extra->has_fd && (fd = fcntl(extra->fd, F_DUPFD_CLOEXEC, 0)) < 0)
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "cannot send an fd: %s",
					strerror(errno));
	if (fd >= 0)
		outbox_fd(&npumem->out, fd);
	out->end += frame_header(bytes, out->bytes + out->end);
	out->end += lends ? payload_write_head(message, extra->data_bytes, out->bytes + out->end)
			  : npumem__v1__request__pack(message, out->bytes + out->end);
	if (lends)
		outbox_borrow(&npumem->out, extra->data, extra->data_bytes, request);
	npumem->last_id = message->id;
	pending_add(&npumem->pending, &(struct pending){message->id, request, extra->to, extra->to_bytes});
	if (lends || buffer_used(out) >= ENGINE_QUEUE_BYTES)
		write_out(npumem);
	return 0;
}

void engine_cancel(struct npumem *npumem, uint64_t id)
{
	static const struct request_extra none;
	Npumem__V1__Request message = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__CancelRequest cancel = NPUMEM__V1__CANCEL_REQUEST__INIT;
	cancel.request_id = id;
	message.call_case = NPUMEM__V1__REQUEST__CALL_CANCEL;
	message.cancel = &cancel;
	engine_send(npumem, NULL, &message, &none, NULL);
}

/* ---- receiving ---- */

/* An event, or the reason why the connection ends. */
static void unasked(struct npumem *npumem, const Npumem__V1__Response *response)
{
	if (response->status && !npumem->ending.status)
		reply_error(response, &npumem->ending);
	if (response->result_case == NPUMEM__V1__RESPONSE__RESULT_EVENT && npumem->on_event) {
		struct npumem_event event;
		reply_event(response->event, &event);
		npumem->on_event(npumem->event_context, &event);
	}
}

/* Data go where they belong, if they did not so as they came. */
static int put_data(const struct pending *pending, const Npumem__V1__Response *response, bool is_direct,
		    struct npumem_error *error)
{
	if (!pending->to || response->status)
		return 0;
	const ProtobufCBinaryData *data =
		response->result_case == NPUMEM__V1__RESPONSE__RESULT_DONE   ? &response->done->data
		: response->result_case == NPUMEM__V1__RESPONSE__RESULT_DUMP ? &response->dump->data
									     : NULL;
	size_t bytes = data ? data->len : 0;
	if (is_direct)
		return bytes ? -1 : 0;
	if (bytes != pending->bytes)
		return npumem_error_set(error, NPUMEM_INVALID, "%zu bytes came for an array of %zu", bytes,
					pending->bytes);
	if (bytes)
		memcpy(pending->to, data->data, bytes);
	return 0;
}

static void answer(struct npumem *npumem, const Npumem__V1__Response *response, bool is_direct)
{
	struct pending pending;
	struct npumem_error error;
	request_clear(&error);
	if (!pending_take(&npumem->pending, response->id, &pending)) {
		engine_break(npumem, "the daemon answered request %llu, which waits for no answer",
			     (unsigned long long)response->id);
		return;
	}
	if (response->status)
		reply_error(response, &error);
	/* A daemon that goes down answers so, and nothing more can come of this connection. */
	if (error.status == NPUMEM_UNAVAILABLE)
		engine_break(npumem, "%.250s", error.message);
	struct npumem_request *request = pending.request;
	if (!request)
		return;
	request->n_waiting--;
	int status = put_data(&pending, response, is_direct, &error);
	if (status >= 0)
		status = request_answered(request, response, error.status ? &error : NULL);
	if (!status)
		return;
	engine_break(npumem, "the daemon's answer to request %llu makes no sense",
		     (unsigned long long)response->id);
}

static void frame(struct npumem *npumem, const uint8_t *bytes, size_t n)
{
	bool is_direct = npumem->in.cut != 0;
	budget_reset(&npumem->budget, n);
	Npumem__V1__Response *response = npumem__v1__response__unpack(&npumem->budget.allocator, n, bytes);
	if (!response) {
		engine_break(npumem, "the daemon sent a message of %zu bytes that cannot be read", n);
		return;
	}
	npumem->dispatching = true;
	if (response->id)
		answer(npumem, response, is_direct);
	else
		unasked(npumem, response);
	npumem->dispatching = false;
}

/* Hands out the complete frames. */
static void frames(struct npumem *npumem)
{
	const uint8_t *message;
	struct payload payload;
	size_t n;
	while (!npumem->broken.status && !npumem->closing) {
		switch (inbox_next(&npumem->in, npumem->memory, &message, &n, &payload)) {
		case INBOX_COMPLETE:
			frame(npumem, message, n);
			inbox_consume(&npumem->in);
			break;
		case INBOX_PAYLOAD: {
			const struct pending *pending = pending_find(&npumem->pending, payload.id);
			bool fits = pending && pending->to && pending->bytes == payload.bytes;
			inbox_direct(&npumem->in, &payload, fits ? pending->to : NULL);
			break;
		}
		case INBOX_MORE:
			return;
		case INBOX_TOO_LARGE:
			engine_break(npumem, "the daemon announced a message of more than %zu bytes",
				     FRAME_BYTES_MAX);
			return;
		case INBOX_BAD_LENGTH:
			engine_break(npumem, "the daemon sent something that is not a message");
			return;
		case INBOX_NO_MEMORY:
			engine_break(npumem, "no memory in this process for an answer");
			return;
		}
	}
}

/* Reads what is there. */
static void read_in(struct npumem *npumem, bool *any)
{
	bool is_all = false;
	frames(npumem);
	for (size_t total = 0; total < ENGINE_TURN_BYTES && !npumem->broken.status && !npumem->closing;) {
		ssize_t n = inbox_receive(&npumem->in, npumem->fd, &is_all);
		if (n == -EINTR)
			continue;
		if (n == -EAGAIN || n == -EWOULDBLOCK) {
			if (npumem->no_more_writes)
				ended(npumem, EPIPE);
			return;
		}
		if (n <= 0) {
			ended(npumem, (int)-n);
			return;
		}
		total += (size_t)n;
		*any = true;
		frames(npumem);
		/* A short read has emptied the socket; asking again would only cost a system call. */
		if (is_all)
			return;
	}
}

/* ---- turns ---- */

static int step(struct npumem *npumem, bool *any, struct npumem_error *error)
{
	*any = false;
	if (npumem->dispatching)
		return npumem_error_set(error, NPUMEM_INVALID, "a callback may send, but not wait or process");
	if (!npumem->broken.status) {
		write_out(npumem);
		read_in(npumem, any);
	}
	if (npumem->next_deadline != CLOCK_NEVER && !npumem->broken.status && !npumem->closing) {
		npumem->dispatching = true;
		request_expire(npumem);
		npumem->dispatching = false;
	}
	if (npumem->broken.status && !npumem->closing)
		abandon(npumem);
	if (!npumem->closing)
		return npumem->broken.status ? engine_error(npumem, error) : 0;
	destroy(npumem);
	return npumem_error_set(error, NPUMEM_CANCELLED, "a callback has closed the connection");
}

int engine_turn(struct npumem *npumem, struct npumem_error *error)
{
	bool any;
	return step(npumem, &any, error);
}

/* One look for an answer. `npumem` may be gone when it has a status. */
struct look {
	struct npumem *npumem;
	struct npumem_error *error;
	unsigned live; /* requests before: one whose time is over ends the look as an answer does */
	int status;
};

static bool has_come(void *ctx)
{
	struct look *look = ctx;
	bool any;
	look->status = step(look->npumem, &any, look->error);
	return look->status || any || look->npumem->n_requests != look->live;
}

int engine_wait(struct npumem *npumem, struct npumem_error *error)
{
	bool any;
	unsigned live = npumem->n_requests;
	int status = step(npumem, &any, error);
	if (status || any || npumem->n_requests != live)
		return status;
	struct look look = {npumem, error, live, 0};
	/* What is learned is known before the first look, after which there may be no connection. */
	bool came = spin_look(&npumem->spin, has_come, &look);
	if (came)
		return look.status;
	struct pollfd pollfd = {.fd = npumem->fd, .events = POLLIN};
	if (!outbox_is_empty(&npumem->out) && !npumem->no_more_writes)
		pollfd.events |= POLLOUT;
	if (poll(&pollfd, 1, clock_left(npumem->next_deadline)) < 0 && errno != EINTR)
		engine_break(npumem, "waiting for the daemon failed: %s", strerror(errno));
	return engine_turn(npumem, error);
}
