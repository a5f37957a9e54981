/* The varint length in front of a message, and nothing of the message itself.
 * Invariant: no input makes a length wrap, and a length over the cap is told before a byte is stored for it. */
#include "proto/frame.h"

/* A 64-bit varint has 9 bytes of 7 bits and one last bit. */
enum { LAST_BYTE_MAX = 1 };

enum frame_result frame_parse(const uint8_t *buffer, size_t bytes, size_t cap, size_t *header_bytes,
			      size_t *message_bytes)
{
	uint64_t length = 0;

	*header_bytes = 0;
	*message_bytes = 0;
	for (unsigned i = 0; i < FRAME_HEADER_BYTES_MAX; i++) {
		if (i == bytes)
			return FRAME_MORE;
		if (i == FRAME_HEADER_BYTES_MAX - 1 && buffer[i] > LAST_BYTE_MAX)
			return FRAME_BAD_LENGTH;
		length |= (uint64_t)(buffer[i] & 0x7f) << (7 * i);
		if (buffer[i] & 0x80)
			continue;
		if (length > cap)
			return FRAME_TOO_LARGE;
		*header_bytes = i + 1;
		*message_bytes = (size_t)length;
		return bytes - *header_bytes >= *message_bytes ? FRAME_COMPLETE : FRAME_MORE;
	}
	return FRAME_BAD_LENGTH;
}

size_t frame_header(size_t message_bytes, uint8_t header[FRAME_HEADER_BYTES_MAX])
{
	uint64_t length = message_bytes;
	size_t used = 0;

	while (length > 0x7f) {
		header[used++] = (uint8_t)(length | 0x80);
		length >>= 7;
	}
	header[used++] = (uint8_t)length;
	return used;
}
