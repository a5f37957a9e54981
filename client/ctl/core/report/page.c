/* page.html with page.css, the record and the scripts put in where it has a line <!-- name -->. The record is data
 * in the page and nothing else: no text of a client can end its element. */
#include <stdbool.h>
#include <string.h>

#include "client/ctl/core/report/report.h"

static int put_data(const char *text, size_t n, void *ctx)
{
	FILE *out = ctx;
	for (const char *end = text + n; text < end; text++)
		if (*text == '<')
			fputs("\\u003c", out);
		else
			fputc(*text, out);
	return ferror(out) ? -1 : 0;
}

static bool put_part(FILE *out, const char *name, size_t n, const json_t *chronicle)
{
	if (n == 5 && !memcmp(name, "style", n))
		fputs(files_css, out);
	else if (n == 6 && !memcmp(name, "script", n))
		fprintf(out, "%s\n%s\n%s", files_model, files_graph, files_page);
	else
		return !json_dump_callback(chronicle, put_data, out, JSON_COMPACT | JSON_ENSURE_ASCII);
	return true;
}

bool page_write(FILE *out, const json_t *chronicle)
{
	static const char opens[] = "<!-- ", closes[] = " -->";
	const char *at = files_html, *mark;
	bool whole = true;
	while ((mark = strstr(at, opens)) && whole) {
		const char *name = mark + strlen(opens), *end = strstr(name, closes);
		fwrite(at, 1, (size_t)(mark - at), out);
		whole = put_part(out, name, (size_t)(end - name), chronicle);
		at = end + strlen(closes);
	}
	fputs(at, out);
	return whole && !fflush(out) && !ferror(out);
}
