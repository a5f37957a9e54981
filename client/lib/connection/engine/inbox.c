/* A buffer with frames. Invariant: while a payload is under way (left > 0) the buffer ends where it was cut out,
 * so that what follows it is appended there; the first frame is then in the buffer, but for `cut` bytes. */
#include "client/lib/connection/engine/engine.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum {
	INBOX_ROOM_BYTES = 64 << 10,  /* kept for one receive */
	INBOX_DIRECT_LEAST = 8 << 10, /* of a payload: below, copying is cheaper than a second stretch */
	INBOX_LOOK_BYTES = 4 << 10,   /* a Done's payload begins within them, where our daemon writes it */
};

static enum inbox_result make_room(struct inbox *inbox, const struct memory *memory, size_t bytes)
{
	return buffer_reserve(&inbox->bytes, memory, bytes > INBOX_ROOM_BYTES ? bytes : INBOX_ROOM_BYTES)
		       ? INBOX_NO_MEMORY
		       : INBOX_MORE;
}

/* Of a frame that is not whole: whether its payload may go elsewhere. */
static bool payload_goes_elsewhere(struct inbox *inbox, size_t header, size_t bytes, struct payload *payload)
{
	size_t n = buffer_used(&inbox->bytes) - header;
	if (inbox->is_known || bytes < INBOX_DIRECT_LEAST)
		return false;
	enum payload_result result =
		payload_find(inbox->bytes.bytes + inbox->bytes.begin + header, n, bytes, payload);
	if (result == PAYLOAD_FOUND && payload->bytes >= INBOX_DIRECT_LEAST)
		return true;
	inbox->is_known = result != PAYLOAD_MORE || n >= INBOX_LOOK_BYTES;
	return false;
}

enum inbox_result inbox_next(struct inbox *inbox, const struct memory *memory, const uint8_t **message,
			     size_t *bytes, struct payload *payload)
{
	struct buffer *in = &inbox->bytes;
	size_t header;
	if (inbox->left)
		return make_room(inbox, memory, 0);
	switch (frame_parse(in->bytes + in->begin, buffer_used(in), FRAME_BYTES_MAX, &header, bytes)) {
	case FRAME_TOO_LARGE:
		return INBOX_TOO_LARGE;
	case FRAME_BAD_LENGTH:
		return INBOX_BAD_LENGTH;
	case FRAME_MORE:
		if (!header)
			return make_room(inbox, memory, 0);
		break;
	case FRAME_COMPLETE:
		break;
	}
	*bytes -= inbox->cut;
	if (buffer_used(in) - header >= *bytes) {
		*message = in->bytes + in->begin + header;
		return INBOX_COMPLETE;
	}
	if (payload_goes_elsewhere(inbox, header, *bytes, payload))
		return INBOX_PAYLOAD;
	/* All of a long message at once, once it is known to be wanted here. */
	return make_room(inbox, memory, inbox->is_known ? header + *bytes - buffer_used(in) : 0);
}

void inbox_direct(struct inbox *inbox, const struct payload *payload, uint8_t *to)
{
	struct buffer *in = &inbox->bytes;
	size_t header, bytes;
	inbox->is_known = true;
	if (!to)
		return;
	frame_parse(in->bytes + in->begin, buffer_used(in), FRAME_BYTES_MAX, &header, &bytes);
	uint8_t *message = in->bytes + in->begin + header;
	size_t n = buffer_used(in) - header, here = n - payload->at;
	if (here > payload->bytes)
		here = payload->bytes;
	memcpy(to, message + payload->at, here);
	memmove(message + payload->field_at, message + payload->at + here, n - payload->at - here);
	payload_cut_length(payload, message);
	inbox->cut = payload->at - payload->field_at + payload->bytes;
	in->end -= payload->at - payload->field_at + here;
	inbox->to = to + here;
	inbox->left = payload->bytes - here;
	inbox->owner = payload->id;
}

void inbox_consume(struct inbox *inbox)
{
	struct buffer *in = &inbox->bytes;
	size_t header, bytes;
	frame_parse(in->bytes + in->begin, buffer_used(in), FRAME_BYTES_MAX, &header, &bytes);
	buffer_consume(in, header + bytes - inbox->cut);
	inbox->cut = 0;
	inbox->is_known = false;
}

void inbox_disown(struct inbox *inbox, uint64_t request)
{
	if (inbox->left && inbox->owner == request)
		inbox->to = NULL;
}

ssize_t inbox_receive(struct inbox *inbox, int fd, bool *is_all)
{
	struct buffer *in = &inbox->bytes;
	struct iovec iovecs[2] = {{inbox->to, inbox->left}, {in->bytes + in->end, in->capacity - in->end}};
	struct msghdr message = {.msg_iov = iovecs, .msg_iovlen = 2};
	size_t room = iovecs[1].iov_len, most = inbox->left + room;
	if (!inbox->left || !inbox->to) {
		/* Nothing behind what is dropped, which is put where it may be overwritten. */
		most = !inbox->left || inbox->left > room ? room : inbox->left;
		iovecs[0] = (struct iovec){in->bytes + in->end, most};
		message.msg_iovlen = 1;
	}
	ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT);
	if (got <= 0)
		return got < 0 ? -errno : 0;
	*is_all = (size_t)got < most;
	size_t payload = (size_t)got < inbox->left ? (size_t)got : inbox->left;
	inbox->left -= payload;
	if (inbox->to)
		inbox->to += payload;
	in->end += (size_t)got - payload;
	return got;
}

bool inbox_is_within(const struct inbox *inbox)
{
	return inbox->left || buffer_used(&inbox->bytes);
}

void inbox_deinit(struct inbox *inbox, const struct memory *memory)
{
	buffer_deinit(&inbox->bytes, memory);
}
