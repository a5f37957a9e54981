/* JUnit XML: suites of cases with their failures. Every text is escaped, and what XML cannot have is left out.
 * Suites of a part are copied as they are: as no text contains a "<", the tags show where a suite begins and ends.
 */
#include "client/ctl/core/sweep/sweep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl/core/memory.h"

static void write_text(FILE *file, const char *from)
{
	for (; *from; from++) {
		switch (*from) {
		case '&':
			fputs("&amp;", file);
			break;
		case '<':
			fputs("&lt;", file);
			break;
		case '>':
			fputs("&gt;", file);
			break;
		case '"':
			fputs("&quot;", file);
			break;
		default:
			putc((unsigned char)*from < ' ' ? ' ' : *from, file);
		}
	}
}

static void write_attribute(FILE *file, const char *name, const char *value)
{
	fprintf(file, " %s=\"", name);
	write_text(file, value);
	putc('"', file);
}

static void write_case(FILE *file, const struct junit_case *one)
{
	fputs("    <testcase", file);
	write_attribute(file, "classname", one->title);
	write_attribute(file, "name", one->name);
	fprintf(file, " time=\"%.6f\"", one->seconds);
	if (!one->failure) {
		fputs("/>\n", file);
		return;
	}
	fputs(">\n      <failure", file);
	write_attribute(file, "message", one->failure);
	fputs("/>\n    </testcase>\n", file);
}

static size_t suite_end(const struct junit_case *cases, size_t n, size_t at, size_t *n_failed)
{
	size_t item = cases[at].item;
	*n_failed = 0;
	for (; at < n && cases[at].item == item; at++)
		*n_failed += cases[at].failure != NULL;
	return at;
}

static void write_head(FILE *file, const struct sweep_part *part)
{
	fprintf(file,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<!-- npumem sweep=%s split=%s run=%s shard=%u/%u items=%zu time=%.6f -->\n<testsuites>\n",
		part->id, part->split, part->run, part->shard, part->n_shards, part->n_items, part->time);
}

static int write_tail(FILE *file, const char *path, struct npumem_error *error)
{
	fputs("</testsuites>\n", file);
	bool bad = ferror(file);
	if (fclose(file) || bad)
		return npumem_error_set(error, NPUMEM_INTERNAL, "%.200s: writing failed: %s", path,
					strerror(errno));
	return 0;
}

int junit_write(const char *path, const struct sweep_part *part, const struct junit_case *cases, size_t n,
		struct npumem_error *error)
{
	FILE *file = fopen(path, "w");
	if (!file)
		return npumem_error_set(error, NPUMEM_INTERNAL, "%.200s: %s", path, strerror(errno));
	write_head(file, part);
	for (size_t at = 0, end; at < n; at = end) {
		size_t n_failed;
		end = suite_end(cases, n, at, &n_failed);
		fputs("  <testsuite", file);
		write_attribute(file, "name", cases[at].suite);
		fprintf(file, " id=\"%zu\" tests=\"%zu\" failures=\"%zu\">\n", cases[at].item, end - at, n_failed);
		for (size_t i = at; i < end; i++)
			write_case(file, &cases[i]);
		fputs("  </testsuite>\n", file);
	}
	return write_tail(file, path, error);
}

static const char suite_begin[] = "  <testsuite name=\"", suite_close[] = "  </testsuite>\n",
		  tail[] = "</testsuites>\n", head[] = "<testsuites>\n";

enum { JUNIT_BYTES_MAX = 1 << 30 };

/* ---- reading parts ---- */

/* The whole file as text, to be freed. NULL: `error` says why. */
static char *read_text(const char *path, struct npumem_error *error)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t room = 0;
	if (!file) {
		npumem_error_set(error, NPUMEM_INVALID, "%.200s: %s", path, strerror(errno));
		return NULL;
	}
	/* No text of a report has a zero byte. */
	ssize_t n = getdelim(&text, &room, '\0', file);
	int err = errno;
	bool bad = ferror(file);
	fclose(file);
	if (n < 0 && (text = realloc(text, 1)))
		*text = 0;
	if (!bad && n < JUNIT_BYTES_MAX)
		return text;
	npumem_error_set(error, NPUMEM_INVALID, "%.200s: %s", path, bad ? strerror(err) : "is too large");
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
		end = strstr(digits, suite_close);
	return end ? end + sizeof(suite_close) - 1 : NULL;
}

/* The suites alone; NULL: there is something else. */
static char *suites_of(const char *text, size_t n_items)
{
	const char *begin = strstr(text, head), *at = begin ? begin + sizeof(head) - 1 : "";
	const char *first = at;
	size_t item;
	for (const char *next; *at && (next = suite_at(at, &item)); at = next)
		if (item >= n_items)
			return NULL;
	return strcmp(at, tail) ? NULL : memory_text("%.*s", (int)(at - first), first);
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
		return npumem_error_set(error, NPUMEM_INVALID, "%.200s is not a JUnit file of check", path);
	return parts_add(parts, &part, error);
}

/* ---- writing them as one ---- */

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

/* Those of the parts that count, in order. */
static struct suite *collect(const struct parts *parts, size_t *n)
{
	struct suite *suites = NULL;
	*n = 0;
	for (size_t i = 0; i < parts->n; i++) {
		const char *at = parts->list[i].by == PARTS_NONE ? parts->list[i].suites : "", *next;
		for (size_t item; (next = suite_at(at, &item)); at = next) {
			struct suite *suite = memory_grow(&suites, (*n)++, sizeof(*suite));
			*suite = (struct suite){item, at, (size_t)(next - at)};
		}
	}
	if (suites)
		qsort(suites, *n, sizeof(*suites), by_item);
	return suites;
}

int junit_parts_write(const struct parts *parts, const char *path, struct npumem_error *error)
{
	struct sweep_part whole;
	size_t n;
	const struct suite *suites = collect(parts, &n);
	for (size_t i = 0; i + 1 < n; i++)
		if (suites[i].item == suites[i + 1].item)
			return npumem_error_set(error, NPUMEM_INVALID, "item %zu ran in two shards",
						suites[i].item);
	FILE *file = fopen(path, "w");
	if (!file)
		return npumem_error_set(error, NPUMEM_INTERNAL, "%.200s: %s", path, strerror(errno));
	parts_whole(parts, &whole);
	write_head(file, &whole);
	for (size_t i = 0; i < n; i++)
		fwrite(suites[i].text, 1, suites[i].bytes, file);
	return write_tail(file, path, error);
}
