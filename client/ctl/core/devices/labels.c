/* Works on the text line by line. Invariant: a metric's head is printed where its first device has it, and then
 * the samples of all that have it, also if the daemons' versions differ. */
#include "client/ctl/core/devices/list.h"

#include <stdbool.h>
#include <string.h>

#include "client/ctl/core/memory.h"

static const char head[] = "# HELP ";

struct cursor {
	const char *device, *at; /* at: the head of its next metric, or the end; NULL: none */
};

static const char *next_line(const char *at)
{
	const char *end = strchr(at, '\n');
	return end ? end + 1 : at + strlen(at);
}

static bool is_head(const char *at)
{
	return !strncmp(at, head, sizeof(head) - 1);
}

/* Where the metric at `at` ends: at the next one. */
static const char *metric_end(const char *at)
{
	for (at = next_line(at); *at && !is_head(at);)
		at = next_line(at);
	return at;
}

/* Of two heads, whether they are of one metric. */
static bool is_same(const char *one, const char *other)
{
	const char *name = one + sizeof(head) - 1;
	size_t n = strcspn(name, " \n");
	const char *end = other + sizeof(head) - 1;
	return !strncmp(name, end, n) && strchr(" \n", end[n]);
}

static void value(FILE *out, const char *text)
{
	for (; *text; text++)
		fprintf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
}

static void samples(FILE *out, const char *device, const char *from, const char *end)
{
	for (const char *line = from; line < end; line = next_line(line)) {
		if (*line == '#' || *line == '\n')
			continue;
		size_t name = strcspn(line, "{ \n"), all = strcspn(line, "\n");
		bool labels = line[name] == '{';
		fprintf(out, "%.*s{device=\"", (int)name, line);
		value(out, device);
		fprintf(out, labels ? "\",%.*s\n" : "\"}%.*s\n", (int)(all - name - labels), line + name + labels);
	}
}

/* The metric of this head in a text; NULL: it has none. */
static const char *find(const char *text, const char *first)
{
	for (; text && *text; text = next_line(text))
		if (is_head(text) && is_same(first, text))
			return text;
	return NULL;
}

/* The metric at the head of cursors[i], of this device and those after it. */
static void metric(FILE *out, struct cursor *cursors, const struct labelled *list, unsigned n, unsigned i)
{
	const char *first = cursors[i].at, *help_end = next_line(first);
	bool typed = !strncmp(help_end, "# TYPE ", 7);
	fwrite(first, 1, (size_t)((typed ? next_line(help_end) : help_end) - first), out);
	for (; i < n; i++) {
		/* It is each one's next, but where versions differ. */
		struct cursor *cursor = &cursors[i];
		bool is_next = cursor->at && is_head(cursor->at) && is_same(first, cursor->at);
		const char *at = is_next ? cursor->at : find(list[i].text, first);
		if (at)
			samples(out, cursor->device, at, metric_end(at));
		if (is_next)
			cursor->at = metric_end(at);
	}
}

/* Whether a device before the i-th had it, with which it was printed. */
static bool is_printed(const struct labelled *list, unsigned i, const char *first)
{
	while (i-- > 0)
		if (find(list[i].text, first))
			return true;
	return false;
}

void labels_print(FILE *out, const struct labelled *list, unsigned n)
{
	struct cursor *cursors = memory_new(n, sizeof(*cursors));
	fputs("# HELP npumem_up Whether the device answered.\n# TYPE npumem_up gauge\n", out);
	for (unsigned i = 0; i < n; i++) {
		fputs("npumem_up{device=\"", out);
		value(out, list[i].device);
		fprintf(out, "\"} %d\n", list[i].text != NULL);
		cursors[i] = (struct cursor){list[i].device, list[i].text};
	}
	for (unsigned i = 0; i < n; i++)
		while (cursors[i].at && is_head(cursors[i].at)) {
			if (is_printed(list, i, cursors[i].at))
				cursors[i].at = metric_end(cursors[i].at);
			else
				metric(out, cursors, list, n, i);
		}
}
