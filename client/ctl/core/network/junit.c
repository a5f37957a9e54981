/* JUnit XML: suites of cases with their failures. Every text is escaped, and what XML cannot have is left out. */
#include "client/ctl/core/network/junit.h"

#include <errno.h>
#include <string.h>

static void text(FILE *file, const char *from)
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

static void attribute(FILE *file, const char *name, const char *value)
{
	fprintf(file, " %s=\"", name);
	text(file, value);
	putc('"', file);
}

static void one_case(FILE *file, const struct junit_case *one)
{
	fputs("    <testcase", file);
	attribute(file, "classname", one->title);
	attribute(file, "name", one->name);
	fprintf(file, " time=\"%.6f\"", one->seconds);
	if (!one->failure) {
		fputs("/>\n", file);
		return;
	}
	fputs(">\n      <failure", file);
	attribute(file, "message", one->failure);
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

void junit_head(FILE *file, const struct sweep_part *part)
{
	fprintf(file,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<!-- npumem sweep=%s split=%s run=%s shard=%u/%u items=%zu time=%.6f -->\n<testsuites>\n",
		part->id, part->split, part->run, part->shard, part->n_shards, part->n_items, part->time);
}

int junit_tail(FILE *file, const char *path, struct npumem_error *error)
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
	junit_head(file, part);
	for (size_t at = 0, end; at < n; at = end) {
		size_t n_failed;
		end = suite_end(cases, n, at, &n_failed);
		fputs("  <testsuite", file);
		attribute(file, "name", cases[at].suite);
		fprintf(file, " id=\"%zu\" tests=\"%zu\" failures=\"%zu\">\n", cases[at].item, end - at, n_failed);
		for (size_t i = at; i < end; i++)
			one_case(file, &cases[i]);
		fputs("  </testsuite>\n", file);
	}
	return junit_tail(file, path, error);
}
