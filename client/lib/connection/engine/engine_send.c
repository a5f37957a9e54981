/* Messages on their way out. Where the session may outlive its connection each is kept as it is packed, and while
 * there is no connection it is only kept. */
#define _GNU_SOURCE /* F_DUPFD_CLOEXEC */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "client/lib/connection/engine/engine.h"
#include "client/lib/messages/message.h"

enum {
	SEND_QUEUE_BYTES = 64 << 10, /* more than this is not left for the next turn */
	SEND_LEND_LEAST = 4 << 10,   /* of a write's data: less is copied sooner than written from elsewhere */
};

void engine_write(struct npumem *npumem)
{
	if (!npumem->no_more_writes && outbox_write(&npumem->out, npumem->memory, npumem->fd))
		npumem->no_more_writes = true;
}

bool engine_wants_write(const struct npumem *npumem)
{
	return !outbox_is_empty(&npumem->out) && !npumem->no_more_writes;
}

/* Room for the message's bytes, its pieces and its answer. */
static int reserve(struct npumem *npumem, size_t bytes, bool lends, bool has_fd)
{
	return pending_reserve(&npumem->pending, npumem->memory) ||
	       outbox_reserve(&npumem->out, npumem->memory, bytes + FRAME_HEADER_BYTES_MAX + PAYLOAD_HEAD_BYTES,
			      (unsigned)lends + has_fd);
}

static int no_memory(size_t bytes, struct npumem_error *error)
{
	return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
				"no memory in this process for a request of %zu bytes", bytes);
}

struct sending {
	struct npumem *npumem;
	Npumem__V1__Request *message;
	const struct request_extra *extra;
	bool lends;	    /* the data are written from where they lie */
	size_t here, bytes; /* of the message: packed, and with what is lent */
	struct kept *kept;
	int fd;
};

static int measure(struct sending *sending, struct npumem_error *error)
{
	size_t data_bytes = sending->extra->data_bytes;
	sending->here = npumem__v1__request__get_packed_size(sending->message);
	sending->bytes = sending->lends ? payload_write_size(sending->message, data_bytes) : sending->here;
	size_t most = sending->bytes + (resume_keeps(&sending->npumem->resume) ? KEPT_AGAIN_BYTES : 0);
	if (most <= FRAME_BYTES_MAX)
		return 0;
	return npumem_error_set(error, NPUMEM_INVALID, "a request of %zu bytes is over the %zu of a frame", most,
				FRAME_BYTES_MAX);
}

/* All that can fail. */
static int prepare(struct sending *sending, struct npumem_error *error)
{
	struct npumem *npumem = sending->npumem;
	const struct request_extra *extra = sending->extra;
	int status = measure(sending, error);
	if (status)
		return status;
	if (extra->has_fd && address_is_remote(&npumem->remote))
		return npumem_error_set(error, NPUMEM_INVALID,
					"a file of this process cannot be passed to a daemon on another host");
	if (reserve(npumem, sending->here, sending->lends, extra->has_fd))
		return no_memory(sending->bytes, error);
	if (extra->has_fd && (sending->fd = fcntl(extra->fd, F_DUPFD_CLOEXEC, 0)) < 0)
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "cannot send an fd: %s",
					strerror(errno));
	if (!resume_keeps(&npumem->resume))
		return 0;
	sending->kept = kept_new(npumem->memory, sending->message, sending->here, sending->lends, extra->data,
				 extra->data_bytes, sending->fd);
	if (sending->kept)
		return 0;
	if (sending->fd < 0)
		return no_memory(sending->bytes, error);
	close(sending->fd);
	return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
				"no memory or no fd in this process for a segment");
}

static size_t pack(const struct sending *sending, uint8_t *to)
{
	if (sending->kept)
		return kept_put(sending->kept, sending->message->id, false, to);
	if (sending->lends)
		return payload_write_head(sending->message, sending->extra->data_bytes, to);
	return npumem__v1__request__pack(sending->message, to);
}

static void put(const struct sending *sending, const void *owner)
{
	struct npumem *npumem = sending->npumem;
	struct buffer *out = &npumem->out.bytes;
	if (sending->fd >= 0)
		outbox_fd(&npumem->out, sending->fd);
	out->end += frame_header(sending->bytes, out->bytes + out->end);
	out->end += pack(sending, out->bytes + out->end);
	if (sending->lends)
		outbox_borrow(&npumem->out, sending->extra->data, sending->extra->data_bytes, owner);
	if (sending->kept)
		sending->kept->was_sent = true;
	if (sending->lends || buffer_used(out) >= SEND_QUEUE_BYTES)
		engine_write(npumem);
}

int engine_send(struct npumem *npumem, struct npumem_request *request, Npumem__V1__Request *message,
		const struct request_extra *extra, struct npumem_error *error)
{
	struct sending sending = {.npumem = npumem, .message = message, .extra = extra, .fd = -1};
	if (npumem->broken.status)
		return engine_error(npumem, error);
	sending.lends = extra->data_bytes >= SEND_LEND_LEAST;
	message->id = npumem->last_id + 1;
	message->answered_below = resume_below(npumem, message->call_case);
	if (extra->data_bytes && !sending.lends)
		message->write->data = (ProtobufCBinaryData){extra->data_bytes, (uint8_t *)(uintptr_t)extra->data};
	int status = prepare(&sending, error);
	if (status)
		return status;
	npumem->last_id = message->id;
	pending_add(&npumem->pending, &(struct pending){.id = message->id,
							.request = request,
							.to = extra->to,
							.bytes = extra->to_bytes,
							.kept = sending.kept});
	if (!resume_is_away(&npumem->resume))
		put(&sending, request);
	else if (sending.fd >= 0)
		close(sending.fd);
	return 0;
}

void engine_cancel(struct npumem *npumem, uint64_t id)
{
	static const struct request_extra none;
	Npumem__V1__CancelRequest cancel = NPUMEM__V1__CANCEL_REQUEST__INIT;
	cancel.request_id = id;
	engine_send(npumem, NULL, &MESSAGE_REQUEST(CANCEL, cancel, &cancel), &none, NULL);
}

/* ---- of the connection's own ---- */

int engine_ask(struct npumem *npumem, Npumem__V1__Request *message, int fd, bool is_again)
{
	const struct request_extra extra = {.has_fd = fd >= 0, .fd = fd};
	struct sending sending = {.npumem = npumem, .message = message, .extra = &extra, .fd = -1};
	message->id = npumem->last_id + 1;
	sending.bytes = npumem__v1__request__get_packed_size(message);
	if (reserve(npumem, sending.bytes, false, extra.has_fd) ||
	    (extra.has_fd && (sending.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)) < 0))
		return -ENOMEM;
	npumem->last_id = message->id;
	if (is_again)
		pending_add(&npumem->pending, &(struct pending){.id = message->id, .is_again = true});
	put(&sending, NULL);
	return 0;
}

/* A kept message as request `id`. */
static int put_kept(struct npumem *npumem, struct kept *kept, uint64_t id, bool again, const void *owner)
{
	struct buffer *out = &npumem->out.bytes;
	size_t bytes = kept_size(kept, id, again);
	int fd = -1;
	if (reserve(npumem, kept->bytes, kept->data != NULL, kept->fd >= 0) ||
	    (kept->fd >= 0 && (fd = fcntl(kept->fd, F_DUPFD_CLOEXEC, 0)) < 0))
		return -ENOMEM;
	if (fd >= 0)
		outbox_fd(&npumem->out, fd);
	out->end += frame_header(bytes, out->bytes + out->end);
	out->end += kept_put(kept, id, again, out->bytes + out->end);
	if (kept->data)
		outbox_borrow(&npumem->out, kept->data, kept->data_bytes, owner);
	kept->was_sent = true;
	return 0;
}

int engine_ask_kept(struct npumem *npumem, struct kept *kept)
{
	uint64_t id = npumem->last_id + 1;
	if (put_kept(npumem, kept, id, false, NULL))
		return -ENOMEM;
	npumem->last_id = id;
	pending_add(&npumem->pending, &(struct pending){.id = id, .is_again = true});
	return 0;
}

int engine_send_again(struct npumem *npumem, const struct pending *pending)
{
	struct kept *kept = pending->kept;
	const void *owner = kept->copy ? (const void *)kept : pending->request;
	return put_kept(npumem, kept, pending->id, kept->was_sent, owner);
}

void engine_let_go(struct npumem *npumem, const void *owner)
{
	if (!outbox_disown(&npumem->out, npumem->memory, owner))
		return;
	/* Its rest cannot be written from where it lies, and nothing else instead of it. */
	npumem->no_more_writes = true;
	outbox_deinit(&npumem->out, npumem->memory);
	engine_break(npumem, "no memory in this process to let a write go");
}
