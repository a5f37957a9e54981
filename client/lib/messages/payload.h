/* The one large field of a message, kept out of it: a write's data, which is the end of its frame, and a read's,
 * which is found in the beginning of its answer. So they are copied by the kernel only. Pure; the field numbers of
 * npumem.proto are written here a second time, and tests/unit/client/lib/messages/payload.c compares. */
#ifndef CLIENT_LIB_PAYLOAD_H
#define CLIENT_LIB_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/npumem.pb-c.h"

/* The size of a write's message with `bytes` of data behind it, which the request itself lacks. */
size_t payload_write_size(const Npumem__V1__Request *request, size_t bytes);
/* Its beginning: all but the data; at most PAYLOAD_HEAD_BYTES more than the packed request. Returns its size. */
enum { PAYLOAD_HEAD_BYTES = 24 };
size_t payload_write_head(const Npumem__V1__Request *request, size_t bytes, uint8_t *to);

/* Where the data of a response with a Done begins. */
struct payload {
	uint64_t id;	 /* of the response */
	size_t bytes;	 /* of the data */
	size_t at;	 /* its first byte in the message */
	size_t field_at; /* where its field begins, so that the message without it is valid once the */
	size_t done_at;	 /* length of the Done, in done_bytes bytes from here on, is less by it */
	size_t done_bytes, done_length;
};

enum payload_result { PAYLOAD_FOUND, PAYLOAD_MORE, PAYLOAD_NONE };

/* Looks at the first n bytes of a message of `total` bytes. NONE: there is none, or not where our daemon puts it.
 */
enum payload_result payload_find(const uint8_t *message, size_t n, size_t total, struct payload *payload);
/* Makes the Done's length that of one without the data. */
void payload_cut_length(const struct payload *payload, uint8_t *message);

#endif
