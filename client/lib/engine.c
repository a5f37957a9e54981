/* The engine of a connection: queues, frames, the hand-out of answers. Invariant: see engine.h.
 * The peer is a process like any other: whatever it sends, the worst that comes of it is UNAVAILABLE.
 * Does not know what a request means. */
#include "client/lib/engine.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "client/lib/reply.h"
#include "proto/frame.h"

enum {
	ENGINE_READ_BYTES = 64 << 10,	 /* room kept for one recv */
	ENGINE_QUEUE_BYTES = 64 << 10,	 /* more than this is not left for the next turn */
	ENGINE_TURN_BYTES = 32 << 20,	 /* read in one turn, so that a flood cannot hold the caller */
	ENGINE_SPIN_NANOSECONDS = 50000, /* crossing cores through the scheduler costs two thirds of this */
	ENGINE_SPIN_MOST = 16,
};

static void *budget_take(void *ctx, size_t bytes)
{
	return memory_alloc(((struct npumem *)ctx)->memory, bytes);
}

static void budget_release(void *ctx, void *memory)
{
	memory_free(((struct npumem *)ctx)->memory, memory);
}

int engine_new(const struct memory *memory, int fd, struct npumem **out)
{
	struct npumem *npumem = memory_alloc(memory, sizeof(*npumem));
	if (!npumem) {
		close(fd);
		return -ENOMEM;
	}
	*npumem = (struct npumem){.memory = memory, .fd = fd, .out_fd = -1, .child_log = -1, .spin = ENGINE_SPIN_MOST};
	budget_init(&npumem->budget, budget_take, budget_release, npumem);
	*out = npumem;
	return 0;
}

/* Tells every waiting request why there will be no answer. Callbacks may try to send, and are refused. */
static void engine_abandon(struct npumem *npumem)
{
	unsigned n;
	struct pending *all = pending_take_all(&npumem->pending, &n);
	npumem->dispatching = true;
	for (unsigned i = 0; i < n; i++)
		all[i].done(&all[i], NULL, &npumem->broken);
	npumem->dispatching = false;
	memory_free(npumem->memory, all);
}

void engine_free(struct npumem *npumem)
{
	const struct memory *memory = npumem->memory;
	if (!npumem->broken.status)
		npumem_error_set(&npumem->broken, NPUMEM_CANCELLED, "the connection was closed by its user");
	engine_abandon(npumem);
	close(npumem->fd);
	budget_deinit(&npumem->budget);
	pending_deinit(&npumem->pending, memory);
	buffer_deinit(&npumem->out, memory);
	buffer_deinit(&npumem->in, memory);
	memory_free(memory, npumem);
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
static int engine_ended(struct npumem *npumem, int err)
{
	if (npumem->ending.status)
		return engine_break(npumem, "the daemon ended the connection: %.200s", npumem->ending.message);
	/* The kernel says so where the daemon left requests unread. */
	if (err == ECONNRESET || err == EPIPE)
		err = 0;
	if (err)
		return engine_break(npumem, "the connection to the daemon broke: %s", strerror(err));
	if (buffer_used(&npumem->in))
		return engine_break(npumem, "the daemon closed the connection in the middle of an answer");
	return engine_break(npumem, "the daemon closed the connection");
}

static int engine_error(const struct npumem *npumem, struct npumem_error *error)
{
	if (error)
		*error = npumem->broken;
	return npumem->broken.status;
}

/* ---- sending ---- */

/* The fd goes with the first byte that the kernel takes. */
static ssize_t engine_send_fd(struct npumem *npumem)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.bytes = {0}};
	struct iovec iov = {npumem->out.bytes + npumem->out.begin, buffer_used(&npumem->out)};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
	message.msg_control = control.bytes;
	message.msg_controllen = sizeof(control.bytes);
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &npumem->out_fd, sizeof(int));
	ssize_t n = sendmsg(npumem->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n > 0)
		npumem->out_fd = -1;
	return n;
}

static void engine_write(struct npumem *npumem)
{
	while (buffer_used(&npumem->out) && !npumem->no_more_writes) {
		ssize_t n = npumem->out_fd >= 0 ? engine_send_fd(npumem)
						: send(npumem->fd, npumem->out.bytes + npumem->out.begin,
						       buffer_used(&npumem->out), MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n > 0)
			buffer_consume(&npumem->out, (size_t)n);
		else if (n < 0 && errno == EINTR)
			continue;
		else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		else
			npumem->no_more_writes = true;
	}
}

int engine_send(struct npumem *npumem, Npumem__V1__Request *request, const struct pending *pending,
		struct npumem_error *error)
{
	if (npumem->broken.status)
		return engine_error(npumem, error);
	struct pending entry = *pending;
	entry.id = request->id = npumem->last_id + 1;
	size_t bytes = npumem__v1__request__get_packed_size(request);
	if (bytes > FRAME_BYTES_MAX)
		return npumem_error_set(error, NPUMEM_INVALID, "a request of %zu bytes is over the %zu of a frame",
					bytes, FRAME_BYTES_MAX);
	if (pending_reserve(&npumem->pending, npumem->memory) ||
	    buffer_reserve(&npumem->out, npumem->memory, FRAME_HEADER_BYTES_MAX + bytes))
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
					"no memory in this process for a request of %zu bytes", bytes);
	npumem->out.end += frame_header(bytes, npumem->out.bytes + npumem->out.end);
	npumem->out.end += npumem__v1__request__pack(request, npumem->out.bytes + npumem->out.end);
	npumem->last_id = entry.id;
	pending_add(&npumem->pending, &entry);
	if (buffer_used(&npumem->out) >= ENGINE_QUEUE_BYTES)
		engine_write(npumem);
	return 0;
}

/* ---- receiving ---- */

static bool engine_fits(const struct pending *pending, const Npumem__V1__Response *response)
{
	return response->result_case == pending->result || pending->result == PENDING_ANY;
}

static int engine_answer(struct npumem *npumem, const Npumem__V1__Response *response)
{
	struct pending pending;
	struct npumem_error error;
	if (!response->id) {
		if (response->status && !npumem->ending.status)
			reply_error(response, &npumem->ending);
		if (response->result_case == NPUMEM__V1__RESPONSE__RESULT_EVENT && npumem->on_event) {
			struct npumem_event event;
			reply_event(response->event, &event);
			npumem->on_event(npumem->event_context, &event);
		}
		return 0;
	}
	if (!pending_take(&npumem->pending, response->id, &pending))
		return engine_break(npumem, "the daemon answered request %llu, which waits for no answer",
				    (unsigned long long)response->id);
	if (!response->status && engine_fits(&pending, response) &&
	    !pending.done(&pending, response, NULL))
		return 0;
	if (!response->status) {
		engine_break(npumem, "the daemon's answer to request %llu makes no sense",
			     (unsigned long long)response->id);
		pending.done(&pending, NULL, &npumem->broken);
		return NPUMEM_UNAVAILABLE;
	}
	reply_error(response, &error);
	/* A daemon that goes down answers so, and nothing more can come of this connection. */
	if (error.status == NPUMEM_UNAVAILABLE)
		engine_break(npumem, "%.250s", error.message);
	pending.done(&pending, engine_fits(&pending, response) ? response : NULL, &error);
	return npumem->broken.status;
}

static int engine_frame(struct npumem *npumem, const uint8_t *bytes, size_t n)
{
	budget_reset(&npumem->budget, n);
	Npumem__V1__Response *response = npumem__v1__response__unpack(&npumem->budget.allocator, n, bytes);
	if (!response)
		return engine_break(npumem, "the daemon sent a message of %zu bytes that cannot be read", n);
	npumem->dispatching = true;
	int status = engine_answer(npumem, response);
	npumem->dispatching = false;
	return status;
}

/* Hands out the complete frames of the buffer; makes room for the rest of an incomplete one. */
static int engine_frames(struct npumem *npumem)
{
	struct buffer *in = &npumem->in;
	for (;;) {
		size_t header, bytes;
		switch (frame_parse(in->bytes + in->begin, buffer_used(in), FRAME_BYTES_MAX, &header, &bytes)) {
		case FRAME_COMPLETE:
			if (engine_frame(npumem, in->bytes + in->begin + header, bytes))
				return NPUMEM_UNAVAILABLE;
			buffer_consume(in, header + bytes);
			break;
		case FRAME_MORE:
			bytes = header ? header + bytes - buffer_used(in) : 0;
			if (buffer_reserve(in, npumem->memory,
					   bytes > ENGINE_READ_BYTES ? bytes : ENGINE_READ_BYTES))
				return engine_break(npumem, "no memory in this process for an answer of %zu bytes",
						    bytes);
			return 0;
		case FRAME_TOO_LARGE:
			return engine_break(npumem, "the daemon announced a message of more than %zu bytes",
					    FRAME_BYTES_MAX);
		case FRAME_BAD_LENGTH:
			return engine_break(npumem, "the daemon sent something that is not a message");
		}
	}
}

/* Reads what is there. 0 or UNAVAILABLE. */
static int engine_read(struct npumem *npumem, bool *any)
{
	for (size_t total = 0; total < ENGINE_TURN_BYTES;) {
		if (engine_frames(npumem))
			return NPUMEM_UNAVAILABLE;
		size_t room = npumem->in.capacity - npumem->in.end;
		ssize_t n = recv(npumem->fd, npumem->in.bytes + npumem->in.end, room, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return npumem->no_more_writes ? engine_ended(npumem, EPIPE) : 0;
		if (n <= 0)
			return engine_ended(npumem, n < 0 ? errno : 0);
		npumem->in.end += (size_t)n;
		total += (size_t)n;
		*any = true;
		/* A short read has emptied the socket; asking again would only cost a system call. */
		if ((size_t)n < room)
			return engine_frames(npumem);
	}
	return 0;
}

static int engine_step(struct npumem *npumem, bool *any, struct npumem_error *error)
{
	if (npumem->dispatching)
		return npumem_error_set(error, NPUMEM_INVALID, "a callback may send, but not wait or process");
	*any = false;
	if (!npumem->broken.status) {
		engine_write(npumem);
		engine_read(npumem, any);
	}
	if (!npumem->broken.status)
		return 0;
	*any = true;
	engine_abandon(npumem);
	return engine_error(npumem, error);
}

int engine_turn(struct npumem *npumem, struct npumem_error *error)
{
	bool any;
	return engine_step(npumem, &any, error);
}

static int64_t engine_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Looks again and again for a moment before sleeping: a small answer arrives sooner than a sleeper wakes up. Gives
 * the core away between looks, and stops trying while answers take longer than that. */
static int engine_spin(struct npumem *npumem, bool *any, struct npumem_error *error)
{
	int status = engine_step(npumem, any, error);
	if (status || *any || npumem->spin == 0)
		return status;
	int64_t until = engine_now() + ENGINE_SPIN_NANOSECONDS;
	do {
		sched_yield();
		status = engine_step(npumem, any, error);
	} while (!status && !*any && engine_now() < until);
	if (*any)
		npumem->spin = ENGINE_SPIN_MOST;
	else
		npumem->spin--;
	return status;
}

int engine_wait(struct npumem *npumem, struct npumem_error *error)
{
	bool any;
	int status = engine_spin(npumem, &any, error);
	if (status || any)
		return status;
	int64_t asleep = engine_now();
	struct pollfd pollfd = {.fd = npumem->fd, .events = POLLIN};
	if (buffer_used(&npumem->out))
		pollfd.events |= POLLOUT;
	while (poll(&pollfd, 1, -1) < 0)
		if (errno != EINTR) {
			engine_break(npumem, "waiting for the daemon failed: %s", strerror(errno));
			break;
		}
	if (engine_now() - asleep < ENGINE_SPIN_NANOSECONDS)
		npumem->spin = ENGINE_SPIN_MOST;
	return engine_turn(npumem, error);
}

void engine_attach(struct npumem *npumem, int fd)
{
	npumem->out_fd = fd;
}

int engine_drain(struct npumem *npumem, struct npumem_error *error)
{
	int status = 0;
	while (!status && buffer_used(&npumem->out))
		status = engine_wait(npumem, error);
	return status;
}
