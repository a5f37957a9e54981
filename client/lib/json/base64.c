#include "client/lib/json/base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_put(FILE *out, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i += 3) {
		size_t left = n - i;
		uint32_t word = (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
				(left > 2 ? bytes[i + 2] : 0);
		fputc(digits[word >> 18], out);
		fputc(digits[word >> 12 & 63], out);
		fputc(left > 1 ? digits[word >> 6 & 63] : '=', out);
		fputc(left > 2 ? digits[word & 63] : '=', out);
	}
}

static int value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

long base64_get(const char *text, size_t n, uint8_t *to)
{
	uint32_t word = 0;
	size_t used = 0, padding = 0;
	while (n && padding < 2 && text[n - 1] == '=') {
		n--;
		padding++;
	}
	if (n % 4 == 1 || (padding && (n + padding) % 4))
		return -1;
	for (size_t i = 0; i < n; i++) {
		int value = value_of(text[i]);
		if (value < 0)
			return -1;
		word = word << 6 | (uint32_t)value;
		if (i % 4)
			to[used++] = (uint8_t)(word >> (6 - i % 4 * 2));
	}
	/* Bits that no byte has are zero: each value has one text. */
	if ((n % 4 == 2 && word & 15) || (n % 4 == 3 && word & 3))
		return -1;
	return (long)used;
}
