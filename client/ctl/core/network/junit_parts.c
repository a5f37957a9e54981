/* Suites are moved as they are written: where one begins and ends is plain, as no text of junit_write has a "<" in
 * it. What is not of junit_write is refused. */
#include "client/ctl/core/network/junit_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl/core/network/junit.h"

static const char suite_begin[] = "  <testsuite name=\"", suite_end[] = "  </testsuite>\n",
		  tail[] = "</testsuites>\n", head[] = "<testsuites>\n";

enum { JUNIT_BYTES_MAX = 1 << 30 };

/* ---- reading ---- */

/* The whole file as text, to be freed. NULL: `error` says why. */
static char *read_text(const char *path, struct npumem_error *error)
{
	FILE *file = fopen(path, "r"), *copy;
	char buffer[16384], *text = NULL;
	size_t n, bytes = 0;
	if (!file) {
		npumem_error_set(error, NPUMEM_INVALID, "%.200s: %s", path, strerror(errno));
		return NULL;
	}
	errno = 0;
	copy = open_memstream(&text, &bytes);
	for (size_t all = 0; copy && all < JUNIT_BYTES_MAX && (n = fread(buffer, 1, sizeof(buffer), file));
	     all += n)
		fwrite(buffer, 1, n, copy);
	int err = errno;
	bool bad = ferror(file) || !feof(file);
	fclose(file);
	if (!copy || fclose(copy)) {
		npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "no memory for %.200s", path);
	} else if (bad) {
		npumem_error_set(error, NPUMEM_INVALID, "%.200s: %s", path, err ? strerror(err) : "is too large");
	} else {
		return text;
	}
	free(text);
	return NULL;
}

static bool take_part(const char *text, struct sweep_part *part)
{
	const char *line = strstr(text, "<!-- npumem sweep=");
	return line &&
	       sscanf(line,
		      "<!-- npumem sweep=%16[0-9a-f] split=%16[0-9a-f] run=%16[0-9a-f] shard=%u/%u "
		      "items=%zu time=%lf -->",
		      part->id, part->split, part->run, &part->shard, &part->n_shards, &part->n_items,
		      &part->time) == 7 &&
	       part->shard >= 1 && part->shard <= part->n_shards && part->n_shards <= SWEEP_SHARDS_MAX;
}

/* The suite at `at`: its item, and where it ends; NULL: it is none. */
static const char *suite_at(const char *at, size_t *item)
{
	static const char before[] = "\" id=\"", after[] = "\" tests=\"";
	const char *id = NULL, *end = NULL;
	char *digits = NULL;
	if (!strncmp(at, suite_begin, sizeof(suite_begin) - 1))
		id = strchr(at + sizeof(suite_begin) - 1, '"');
	if (!id || strncmp(id, before, sizeof(before) - 1))
		return NULL;
	*item = strtoull(id + sizeof(before) - 1, &digits, 10);
	if (!strncmp(digits, after, sizeof(after) - 1))
		end = strstr(digits, suite_end);
	return end ? end + sizeof(suite_end) - 1 : NULL;
}

/* The suites alone, to be freed; NULL: there is something else. */
static char *suites_of(const char *text, size_t n_items)
{
	const char *begin = strstr(text, head), *at = begin ? begin + sizeof(head) - 1 : "";
	const char *first = at;
	size_t item;
	for (const char *next; *at && (next = suite_at(at, &item)); at = next)
		if (item >= n_items)
			return NULL;
	return strcmp(at, tail) ? NULL : strndup(first, (size_t)(at - first));
}

static bool is_whole(const char *text)
{
	size_t n = strlen(text);
	return n >= sizeof(tail) && !strcmp(text + n - sizeof(tail) + 1, tail);
}

int junit_parts_read(struct parts *parts, const char *path, const char **why_not, struct npumem_error *error)
{
	struct part part = {.path = path};
	char *text = read_text(path, error);
	*why_not = NULL;
	if (!text)
		return NPUMEM_INVALID;
	if (!is_whole(text))
		*why_not = "it is not whole";
	else if (take_part(text, &part.of))
		part.suites = suites_of(text, part.of.n_items);
	free(text);
	if (*why_not)
		return 0;
	if (!part.suites)
		return npumem_error_set(error, NPUMEM_INVALID, "%.200s is no JUnit file of check", path);
	return parts_add(parts, &part, error);
}

/* ---- writing ---- */

struct suite {
	size_t item;
	const char *text;
	size_t bytes;
};

static int by_item(const void *a, const void *b)
{
	const struct suite *one = a, *other = b;
	return one->item < other->item ? -1 : one->item > other->item;
}

/* Those of the parts that count, in order; freed by the caller. NULL without memory. */
static struct suite *collect(const struct parts *parts, size_t *n)
{
	struct suite *suites = NULL;
	size_t room = 0;
	*n = 0;
	for (size_t i = 0; i < parts->n; i++) {
		const char *at = parts->list[i].by == PARTS_NONE ? parts->list[i].suites : "", *next;
		for (size_t item; (next = suite_at(at, &item)); at = next) {
			if (*n == room) {
				room = room ? 2 * room : 64;
				struct suite *more = realloc(suites, room * sizeof(*more));
				if (!more) {
					free(suites);
					return NULL;
				}
				suites = more;
			}
			suites[*n] = (struct suite){item, at, (size_t)(next - at)};
			*n += 1;
		}
	}
	if (suites)
		qsort(suites, *n, sizeof(*suites), by_item);
	return suites ? suites : calloc(1, sizeof(*suites));
}

int junit_parts_write(const struct parts *parts, const char *path, struct npumem_error *error)
{
	struct sweep_part whole;
	size_t n;
	struct suite *suites = collect(parts, &n);
	int status = 0;
	if (!suites)
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "no memory for the suites");
	for (size_t i = 0; i + 1 < n && !status; i++)
		if (suites[i].item == suites[i + 1].item)
			status = npumem_error_set(error, NPUMEM_INVALID, "item %zu ran in two shards",
						  suites[i].item);
	FILE *file = status ? NULL : fopen(path, "w");
	if (!status && !file)
		status = npumem_error_set(error, NPUMEM_INTERNAL, "%.200s: %s", path, strerror(errno));
	if (!status) {
		parts_whole(parts, &whole);
		junit_head(file, &whole);
		for (size_t i = 0; i < n; i++)
			fwrite(suites[i].text, 1, suites[i].bytes, file);
		status = junit_tail(file, path, error);
	}
	free(suites);
	return status;
}
