/* The bytes of an input of `request`: a byte (bit 0: the owner and the admin take part, and nothing is said of
 * what the others see; bit 1: long operations run on threads; bit 2: nobody has a tensor at first), then records:
 * a byte (the low four bits what happens, the high ones to which of those), and of a message its length and its
 * bytes. */
#ifndef TESTS_FUZZ_REQUEST_H
#define TESTS_FUZZ_REQUEST_H

#include <stdbool.h>

#include "tests/fuzz/fuzz.h"

enum { REQUEST_MESSAGES_MAX = 64, REQUEST_WHO_SHIFT = 4, REQUEST_ALL = 1, REQUEST_THREADS = 2, REQUEST_EMPTY = 4 };
enum request_happening { REQUEST_WORK = 8, REQUEST_DONE, REQUEST_SETTLE, REQUEST_WAIT, REQUEST_CLOSE };

/* Everything else is a message. */
static inline bool request_is_message(uint8_t byte)
{
	return (byte & 15) < REQUEST_WORK || (byte & 15) > REQUEST_CLOSE;
}

/* Of what is there at most. */
static inline size_t request_length(struct fuzz_bytes *input)
{
	size_t n = fuzz_byte(input);

	if (n >= 0x80)
		n = (n & 0x7f) | (size_t)fuzz_byte(input) << 7;
	return n < fuzz_left(input) ? n : fuzz_left(input);
}

#endif
