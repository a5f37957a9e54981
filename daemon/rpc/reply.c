/* The encoder behind reply.h: tags and lengths by hand, messages by proto/encode.
 * Invariant: `out` always has REPLY_REST_BYTES of room beyond what the reply has used, so that it can be ended. */
#include "daemon/rpc/reply.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "proto/encode.h"
#include "proto/frame.h"

enum {
	WIRE_LENGTH_DELIMITED = 2,
	OK_REST_BYTES = 16,   /* the id of a reply that is OK */
	RESPONSE_ID = 1,      /* Response.id */
	EXPECTED_BYTES = 128, /* of a reply, and of a message in it: most are a tensor or less */
};

/* ---- the bytes ---- */

/* They grow by doubling up to a megabyte and by a megabyte from there on, so that one long reply does not take
 * twice its size. */
enum { STEP_BYTES = 1 << 20 };

void buffer_init(struct buffer *buffer, const struct heap *heap)
{
	*buffer = (struct buffer){.heap = heap};
}

void buffer_deinit(struct buffer *buffer)
{
	heap_free(buffer->heap, buffer->bytes);
	*buffer = (struct buffer){.heap = buffer->heap};
}

int buffer_reserve(struct buffer *buffer, size_t bytes)
{
	size_t need, room;
	uint8_t *grown;

	if (bytes <= buffer->room - buffer->used)
		return 0;
	if (__builtin_add_overflow(buffer->used, bytes, &need) ||
	    __builtin_add_overflow(buffer->room, buffer->room < STEP_BYTES ? buffer->room : STEP_BYTES, &room))
		return -ENOMEM;
	if (room < BUFFER_LEAST_BYTES)
		room = BUFFER_LEAST_BYTES;
	if (room < need)
		room = need;
	grown = heap_alloc(buffer->heap, room);
	if (!grown)
		return -ENOMEM;
	if (buffer->used)
		memcpy(grown, buffer->bytes, buffer->used);
	heap_free(buffer->heap, buffer->bytes);
	buffer->bytes = grown;
	buffer->room = room;
	return 0;
}

/* ---- the reply in them ---- */

static size_t length_bytes(size_t length)
{
	size_t bytes = 1;

	while (length >>= 7)
		bytes++;
	return bytes;
}

static size_t open_length(struct buffer *out, size_t expected_bytes)
{
	out->used += length_bytes(expected_bytes);
	return out->used;
}

static void close_length(struct buffer *out, size_t mark, size_t expected_bytes)
{
	size_t width = length_bytes(expected_bytes), body = out->used - mark, right = length_bytes(body);

	if (right != width) {
		memmove(out->bytes + mark - width + right, out->bytes + mark, body);
		out->used = out->used - width + right;
	}
	frame_header(body, out->bytes + mark - width);
}

static void put_tag(struct buffer *out, unsigned field)
{
	out->used += frame_header((size_t)field << 3 | WIRE_LENGTH_DELIMITED, out->bytes + out->used);
}

int reply_begin(struct reply *reply, struct buffer *out)
{
	if (buffer_reserve(out, REPLY_REST_BYTES))
		return -ENOMEM;
	reply->out = out;
	reply->start = out->used;
	reply->expected_bytes = EXPECTED_BYTES;
	reply->frame = open_length(out, reply->expected_bytes);
	return 0;
}

void reply_expect(struct reply *reply, size_t bytes)
{
	if (reply_used(reply))
		return;
	reply->out->used = reply->start;
	reply->expected_bytes = bytes;
	reply->frame = open_length(reply->out, bytes);
}

void reply_drop(struct reply *reply)
{
	reply->out->used = reply->frame;
}

size_t reply_used(const struct reply *reply)
{
	return reply->out->used - reply->frame;
}

void reply_rewind(struct reply *reply, size_t used)
{
	reply->out->used = reply->frame + used;
}

/* The message may quote what a client sent: one line of ASCII, whatever that was. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

static void put_error(struct reply *reply, struct npumem_error *error)
{
	Npumem__V1__Response response = NPUMEM__V1__RESPONSE__INIT;
	Npumem__V1__Field fields[NPUMEM_FIELDS_MAX], *pointers[NPUMEM_FIELDS_MAX];

	response.status = (Npumem__V1__Status)error->status;
	make_printable(error->message);
	response.message = error->message;
	response.n_fields = error->n_fields;
	response.fields = pointers;
	for (unsigned i = 0; i < error->n_fields; i++) {
		struct npumem_field *field = &error->fields[i];

		npumem__v1__field__init(&fields[i]);
		pointers[i] = &fields[i];
		fields[i].key = field->key;
		fields[i].value_case =
			field->is_text ? NPUMEM__V1__FIELD__VALUE_TEXT : NPUMEM__V1__FIELD__VALUE_NUMBER;
		fields[i].number = field->number;
		if (!field->is_text)
			continue;
		make_printable(field->text);
		fields[i].text = field->text;
	}
	reply_fields(reply, &response.base);
}

void reply_end(struct reply *reply, uint64_t id, struct npumem_error *error)
{
	reply_number(reply, RESPONSE_ID, id);
	if (error->status)
		put_error(reply, error);
	close_length(reply->out, reply->frame, reply->expected_bytes);
}

int reply_check_cap(const struct reply *reply, size_t bytes, struct npumem_error *error)
{
	size_t total;

	if (__builtin_add_overflow(reply_used(reply) + OK_REST_BYTES, bytes, &total) || total > FRAME_BYTES_MAX)
		return npumem_error_set(
			error, NPUMEM_INVALID,
			"the reply could take %zu bytes, and a frame has at most %zu: ask for less at a time",
			total, FRAME_BYTES_MAX);
	return 0;
}

int reply_make_room(struct reply *reply, size_t bytes, struct npumem_error *error)
{
	if (buffer_reserve(reply->out, bytes + REPLY_REST_BYTES))
		return heap_exhausted(error);
	return 0;
}

int reply_reserve(struct reply *reply, size_t bytes, struct npumem_error *error)
{
	int status = reply_check_cap(reply, bytes, error);

	return status ? status : reply_make_room(reply, bytes, error);
}

size_t reply_open(struct reply *reply, unsigned field, size_t expected_bytes)
{
	put_tag(reply->out, field);
	return open_length(reply->out, expected_bytes);
}

void reply_close(struct reply *reply, size_t mark, size_t expected_bytes)
{
	close_length(reply->out, mark, expected_bytes);
}

/* A bound that was too small is our bug. What lies behind the buffer is overwritten by then, maybe by a client's
 * bytes: the daemon ends before it can use them. */
void reply_fields(struct reply *reply, const ProtobufCMessage *message)
{
	struct buffer *out = reply->out;

	out->used += encode_message(message, out->bytes + out->used);
	if (out->used > out->room)
		abort();
}

void reply_message(struct reply *reply, unsigned field, const ProtobufCMessage *message)
{
	size_t mark = reply_open(reply, field, EXPECTED_BYTES);

	reply_fields(reply, message);
	reply_close(reply, mark, EXPECTED_BYTES);
}

void reply_number(struct reply *reply, unsigned field, uint64_t number)
{
	struct buffer *out = reply->out;

	if (!number)
		return;
	out->bytes[out->used++] = (uint8_t)(field << 3);
	out->used += frame_header(number, out->bytes + out->used);
}

uint8_t *reply_bytes(struct reply *reply, unsigned field, size_t bytes)
{
	struct buffer *out = reply->out;
	uint8_t *to;

	put_tag(out, field);
	out->used += frame_header(bytes, out->bytes + out->used);
	to = out->bytes + out->used;
	out->used += bytes;
	return to;
}

int reply_result(struct reply *reply, unsigned field, const ProtobufCMessage *message, struct npumem_error *error)
{
	size_t bytes = protobuf_c_message_get_packed_size(message);
	int status = reply_reserve(reply, bytes + REPLY_TAG_BYTES, error);
	size_t mark;

	if (status)
		return status;
	mark = reply_open(reply, field, bytes);
	reply_fields(reply, message);
	reply_close(reply, mark, bytes);
	return 0;
}

void reply_append(struct reply *reply, const struct reply *other)
{
	size_t bytes = reply_used(other);

	memcpy(reply->out->bytes + reply->out->used, other->out->bytes + other->frame, bytes);
	reply->out->used += bytes;
}
