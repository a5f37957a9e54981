/* Payloads of requests: bytes, and elements of arrays. */
#ifndef LIB_MESSAGES_PAYLOAD_H
#define LIB_MESSAGES_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <npumem/types.h>

#include "client/lib/connection/memory.h"
#include "proto/npumem.pb-c.h"

/* buffer.c. A queue of bytes in one piece: bytes come in at `end` and leave at `begin`. */

struct buffer {
	uint8_t *bytes;
	size_t begin, end, capacity; /* begin <= end <= capacity */
};

static inline size_t buffer_used(const struct buffer *buffer)
{
	return buffer->end - buffer->begin;
}

/* Makes room for `room` bytes from `end` on; may move what is there. 0 or -ENOMEM (nothing changed). */
int buffer_reserve(struct buffer *buffer, const struct memory *memory, size_t room);

/* Drops `bytes` (<= buffer_used) at the front. */
void buffer_consume(struct buffer *buffer, size_t bytes);

void buffer_deinit(struct buffer *buffer, const struct memory *memory);

/* sized.c. Structs of the caller that begin with their size: an older program's are shorter than ours, a later
 * one's longer, with members that we know nothing of. */

/* The end of a member: of the last one that the first version of the library had. */
#define SIZED_UP_TO(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

/* An array of n such structs, all of one size. `first`: what the first version of the library had, `known`: ours.
 * 0; INVALID: shorter than it ever was, of sizes that differ, or a member that is unknown here is not zero. */
int sized_check(const void *array, unsigned n, size_t first, size_t known, const char *what,
		struct npumem_error *error);
/* Element i of a checked array, as we know it: what it lacks is zero. */
void sized_get(const void *array, unsigned i, void *to, size_t known);

/* region.c. Elements of a segment of system memory that a recorded operation moved: how a replay puts back what a
 * write took, and looks at what a read delivered. */

struct region {
	uint64_t offset; /* of element 0, in bytes */
	uint64_t element_bytes;
	uint64_t extent[4], stride[4]; /* in elements */
	uint64_t bytes;		       /* of all elements, dense */
	uint64_t end;		       /* the first byte behind them in the segment */
};

/* False where the numbers make no sense, or are too large to be computed with. */
bool region_of(const Npumem__V1__RecordTransfer *transfer, struct region *region);

/* Sets the sizes where the rest is set: extents > 0. False where they are too large to be computed with. */
bool region_measure(struct region *region);

/* `base` is the segment's, which has at least region->end bytes. `first` and `n` are whole elements within
 * region->bytes. */
void region_put(const struct region *region, uint8_t *base, uint64_t first, const uint8_t *from, uint64_t n);
/* All elements, dense. */
void region_get(const struct region *region, const uint8_t *base, uint8_t *to);
/* zlib's CRC-32 of all elements, dense. */
uint32_t region_crc(const struct region *region, const uint8_t *base);

/* payload.c. The one large field of a message, kept out of it: a write's data, which is the end of its frame, and
 * a read's, which is found in the beginning of its answer. So they are copied by the kernel only. Pure; the field
 * numbers of npumem.proto are written here a second time, and tests/unit/client/lib/messages/payload.c compares.
 */

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
