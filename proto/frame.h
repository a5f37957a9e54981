/* The delimited form: a varint length, then that many bytes. Pure parsing; buffers are the caller's.
 * A length is read before any memory is taken for it. */
#ifndef PROTO_FRAME_H
#define PROTO_FRAME_H

#include <stddef.h>
#include <stdint.h>

enum { FRAME_HEADER_BYTES_MAX = 10 };
#define FRAME_BYTES_MAX ((size_t)16 << 20) /* of one message, without its length */

enum frame_result {
	FRAME_COMPLETE,	  /* the buffer holds the whole frame */
	FRAME_MORE,	  /* so far right, more bytes are needed */
	FRAME_TOO_LARGE,  /* the length is over the cap: the connection cannot go on */
	FRAME_BAD_LENGTH, /* a length of more than 10 bytes, or past 64 bits: likewise */
};

/* Looks at the start of `buffer`. Once the length is known (COMPLETE, and MORE with *header_bytes > 0),
 * *header_bytes and *message_bytes are set; until then both are 0. */
enum frame_result frame_parse(const uint8_t *buffer, size_t bytes, size_t cap, size_t *header_bytes,
			      size_t *message_bytes);

/* Writes the length of a message; returns the header's size. */
size_t frame_header(size_t message_bytes, uint8_t header[FRAME_HEADER_BYTES_MAX]);

#endif
