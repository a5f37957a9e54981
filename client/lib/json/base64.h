/* Bytes as text: RFC 4648's base64, with padding. */
#ifndef CLIENT_LIB_BASE64_H
#define CLIENT_LIB_BASE64_H

#include <stdint.h>
#include <stdio.h>

void base64_put(FILE *out, const uint8_t *bytes, size_t n);
/* What n characters decode to at most. */
static inline size_t base64_room(size_t n)
{
	return n / 4 * 3 + 3;
}
/* Takes + and / or - and _, with padding or without. How many bytes they are, or -1: they are no base64, and `to`
 * may have changed. `to` may be `text`. */
long base64_get(const char *text, size_t n, uint8_t *to);

#endif
