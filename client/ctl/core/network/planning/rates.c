/* Rates as text. Invariant: what passes has no rate of zero, so nothing divides by zero. */
#include "client/ctl/core/network/planning/planning.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/ctl/core/words/words.h"

enum { RATES_FILE_BYTES = 4096, RATES_KEYS = 3 };

static const struct {
	const char *name;
	int64_t least;
} keys[RATES_KEYS] = {{"macs_per_cycle", 1}, {"dma_bytes_per_cycle", 1}, {"overhead", 0}};

static int64_t *value_of(struct rates *rates, unsigned key)
{
	return key == 0 ? &rates->macs_per_cycle : key == 1 ? &rates->dma_bytes_per_cycle : &rates->overhead;
}

/* One "key=value". */
static int read_pair(char *pair, struct rates *rates, bool *given, struct npumem_error *error)
{
	char *value = strchr(pair, '=');
	unsigned key = 0;
	int64_t number;
	if (!value)
		return npumem_error_set(error, NPUMEM_INVALID, "--cost: \"%.60s\" is not key=value", pair);
	*value++ = 0;
	while (key < RATES_KEYS && strcmp(keys[key].name, pair) != 0)
		key++;
	if (key == RATES_KEYS)
		return npumem_error_set(
			error, NPUMEM_INVALID,
			"--cost: there is no key \"%.60s\": macs_per_cycle, dma_bytes_per_cycle, overhead", pair);
	if (given[key])
		return npumem_error_set(error, NPUMEM_INVALID, "--cost: %s is given twice", pair);
	if (!numbers_integer(value, &number) || number < keys[key].least)
		return npumem_error_set(error, NPUMEM_INVALID,
					"--cost: %s is \"%.60s\", but must be an integer from %" PRId64
					" to 9223372036854775807",
					pair, value, keys[key].least);
	given[key] = true;
	*value_of(rates, key) = number;
	return 0;
}

static void drop_comments(char *text)
{
	for (char *at = text; (at = strchr(at, '#'));)
		memset(at, ' ', strcspn(at, "\n"));
}

static int read_file(const char *path, char *text, struct npumem_error *error)
{
	FILE *file = fopen(path, "rb");
	if (!file)
		return npumem_error_set(error, NPUMEM_INVALID, "--cost %.200s: %s; a file, or key=value,…", path,
					strerror(errno));
	size_t n = fread(text, 1, RATES_FILE_BYTES, file);
	bool bad = ferror(file);
	fclose(file);
	if (bad || n == RATES_FILE_BYTES || memchr(text, 0, n))
		return npumem_error_set(error, NPUMEM_INVALID, "--cost %.200s: %s", path,
					bad			? "cannot be read"
					: n == RATES_FILE_BYTES ? "is longer than a file of rates"
								: "is not text");
	text[n] = 0;
	drop_comments(text);
	return 0;
}

int rates_parse(const char *text, struct rates *rates, struct npumem_error *error)
{
	char copy[RATES_FILE_BYTES + 1], *rest = NULL;
	bool given[RATES_KEYS] = {false}, is_file = !strchr(text, '=');
	int status = 0;
	*rates = (struct rates){.overhead = 0};
	if (is_file)
		status = read_file(text, copy, error);
	else if ((size_t)snprintf(copy, sizeof(copy), "%s", text) >= sizeof(copy))
		status = npumem_error_set(error, NPUMEM_INVALID, "--cost is too long");
	if (status)
		return status;
	for (char *pair = strtok_r(copy, is_file ? ", \t\r\n" : ",", &rest); pair && !status;
	     pair = strtok_r(NULL, is_file ? ", \t\r\n" : ",", &rest))
		status = read_pair(pair, rates, given, error);
	for (unsigned key = 0; key < RATES_KEYS && !status; key++)
		if (keys[key].least && !given[key])
			status = npumem_error_set(error, NPUMEM_INVALID, "--cost: %s is missing", keys[key].name);
	return status;
}

const char *rates_formula(const struct rates *rates, char text[RATES_TEXT_BYTES])
{
	snprintf(text, RATES_TEXT_BYTES,
		 "cycles of a run = %" PRId64 " + ceil(MACs / (%" PRId64 " * NPUs)), of DMA = %" PRId64
		 " + ceil(bytes / %" PRId64 "); the sum: one after the other",
		 rates->overhead, rates->macs_per_cycle, rates->overhead, rates->dma_bytes_per_cycle);
	return text;
}
