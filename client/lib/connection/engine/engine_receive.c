/* What the daemon sends: answers, which go to their requests, events, and the end of the stream. */
#include "client/lib/connection/engine/engine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/lib/addresses/address.h"
#include "client/lib/messages/reply.h"

enum { RECEIVE_BYTES_MOST = 32 << 20 /* in one turn, so that a flood cannot hold the caller */ };

/* ---- the end ---- */

/* The connection was closed under us: by the daemon's reason if it sent one. Where that is its own end, or none, a
 * session that outlives it goes on elsewhere. */
static void ended(struct npumem *npumem, int err)
{
	const struct npumem_error *ending = &npumem->ending;
	bool is_meant = ending->status && ending->status != NPUMEM_UNAVAILABLE;
	char why[NPUMEM_MESSAGE_BYTES / 2];
	/* The kernel says so where the daemon left requests unread. */
	if (err == ECONNRESET || err == EPIPE)
		err = 0;
	if (ending->status)
		snprintf(why, sizeof(why), "the daemon ended the connection: %.200s", ending->message);
	else if (err)
		snprintf(why, sizeof(why), "the connection to the daemon broke: %s", strerror(err));
	else if (inbox_is_within(&npumem->in))
		snprintf(why, sizeof(why), "the daemon closed the connection in the middle of an answer");
	else
		snprintf(why, sizeof(why), "the daemon closed the connection");
	if (address_is_remote(&npumem->remote) && !ending->status)
		remote_explain(&npumem->remote, npumem->child_log, npumem->said, why, sizeof(why));
	if ((is_meant && npumem->resume.state != RESUME_KNOCKS) || !resume_lost(npumem, why))
		engine_break(npumem, "%s", why);
}

/* ---- receiving ---- */

/* An event, or the reason why the connection ends. */
static void unasked(struct npumem *npumem, const Npumem__V1__Response *response)
{
	if (response->status && !npumem->ending.status)
		reply_error(response, &npumem->ending);
	if (response->result_case == NPUMEM__V1__RESPONSE__RESULT_EVENT && npumem->on_event &&
	    !resume_is_away(&npumem->resume)) {
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
	if (resume_takes(npumem, response))
		return;
	const struct pending *found = pending_find(&npumem->pending, response->id);
	if (!found) {
		engine_break(npumem, "the daemon answered request %llu, which waits for no answer",
			     (unsigned long long)response->id);
		return;
	}
	if (response->status)
		reply_error(response, &error);
	/* Nothing more can come of this connection. */
	if (error.status == NPUMEM_UNAVAILABLE && npumem_error_find(&error, "going_down", 0)) {
		if (resume_going(npumem, found))
			return;
		engine_break(npumem, "%.250s", error.message);
	}
	pending_take(&npumem->pending, response->id, &pending);
	resume_settle(npumem, &pending, response);
	if (pending.is_again && response->status)
		engine_break(npumem, "the daemon has not taken back what the session had: %.200s", error.message);
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

/* A shell's profile may have written to where a daemon's messages come from. False: no message is there yet, or
 * none will come. */
static bool is_greeted(struct npumem *npumem)
{
	const struct buffer *in = &npumem->in.bytes;
	char line[64];
	if (npumem->is_greeted || !address_is_remote(&npumem->remote) || !buffer_used(in))
		return true;
	int result = remote_greeting(in->bytes + in->begin, buffer_used(in), line, sizeof(line));
	npumem->is_greeted = result > 0;
	if (npumem->is_greeted)
		npumem->said = spawn_said(npumem->child_log);
	if (result < 0)
		engine_break(npumem,
			     "a shell on %.80s wrote \"%s\" before npumemctl dial could begin; what it runs "
			     "at its start (~/.bashrc) must not write to stdout",
			     npumem->remote.host, line);
	return result >= 0;
}

/* Hands out the complete frames. */
static void frames(struct npumem *npumem)
{
	const uint8_t *message;
	struct payload payload;
	size_t n;
	if (!is_greeted(npumem))
		return;
	while (!npumem->broken.status && !npumem->closing) {
		switch (inbox_next(&npumem->in, npumem->memory, &message, &n, &payload)) {
		case INBOX_COMPLETE:
			frame(npumem, message, n);
			if (npumem->fd < 0)
				return; /* what came was dropped with its connection */
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

void engine_receive(struct npumem *npumem, bool *any)
{
	bool is_all = false;
	size_t total = 0;
	frames(npumem);
	while (total < RECEIVE_BYTES_MOST && !npumem->broken.status && !npumem->closing && npumem->fd >= 0) {
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
