/* Sizes as people write and read them. Units are of 1024, as memory is. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <npumem/types.h>

static const char *const units[] = {"", "K", "M", "G"};

enum { N_UNITS = sizeof(units) / sizeof(units[0]) };

/* How often 1024 is to be multiplied; -1: it is no unit. */
static int unit_of(const char *text)
{
	for (int i = 0; i < N_UNITS; i++) {
		size_t length = strlen(units[i]);
		if (!strncmp(text, units[i], length) && (!text[length] || (i && !strcmp(text + length, "iB"))))
			return i;
	}
	return -1;
}

bool npumem_bytes_parse(const char *text, int64_t *bytes)
{
	int64_t value = 0;
	const char *at = text;
	for (; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *at - '0', &value))
			return false;
	int unit = unit_of(at);
	if (at == text || unit < 0 || value > INT64_MAX >> 10 * unit)
		return false;
	*bytes = value << 10 * unit;
	return true;
}

const char *npumem_bytes_text(uint64_t bytes, char text[NPUMEM_BYTES_TEXT_BYTES])
{
	int unit = 0;
	while (bytes && !(bytes & 1023) && unit < N_UNITS - 1) {
		bytes >>= 10;
		unit++;
	}
	snprintf(text, NPUMEM_BYTES_TEXT_BYTES, unit ? "%" PRIu64 " %siB" : "%" PRIu64 "%s", bytes, units[unit]);
	return text;
}
