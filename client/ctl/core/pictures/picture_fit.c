/* Text broken into lines that a terminal has room for. */
#include "client/ctl/core/pictures/picture.h"

#include <string.h>

enum { FIT_INDENT = 4, FIT_LEAST = 16 };

/* How many of the n bytes go on a line of `room` columns; a byte is counted as a column, which none exceeds. */
static size_t fit_part(const char *line, size_t n, size_t room)
{
	size_t part = room;
	if (n <= room)
		return n;
	while (part && line[part] != ' ')
		part--;
	if (part)
		return part;
	for (part = room; part > 1 && (line[part] & 0xc0) == 0x80;)
		part--;
	return part;
}

static void fit_line(FILE *out, const char *line, size_t n, size_t width)
{
	size_t indent = 0;
	while (n) {
		size_t part = fit_part(line, n, width - indent);
		fprintf(out, "%*s%.*s\n", (int)indent, "", (int)part, line);
		line += part;
		n -= part;
		for (; n && *line == ' '; n--)
			line++;
		indent = FIT_INDENT;
	}
}

void picture_fit(FILE *out, const char *text, unsigned width)
{
	width = width && width < FIT_LEAST ? FIT_LEAST : width;
	while (*text) {
		size_t n = strcspn(text, "\n");
		if (!width || n <= width || memchr(text, '\033', n))
			fprintf(out, "%.*s\n", (int)n, text);
		else
			fit_line(out, text, n, width);
		text += n + (text[n] == '\n');
	}
}
