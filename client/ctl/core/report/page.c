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

/* ---- A record's entries without what only a replay needs. ---- */

static int add_entry(void *ctx, const char *json)
{
	json_t *entry = json_loads(json, 0, NULL);
	json_object_del(entry, "digest");
	json_object_del(entry, "handles");
	json_array_append_new(ctx, entry);
	return 0;
}

static json_t *device_of(const struct npumem_info *info)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:I}", "version", info->version, "n_npus",
			 (json_int_t)info->geometry.n_npus, "npu_bytes", (json_int_t)info->geometry.npu_bytes,
			 "n_banks", (json_int_t)info->geometry.n_banks, "eu_bytes",
			 (json_int_t)info->geometry.eu_bytes);
}

json_t *chronicle_read(const char *path, struct npumem_error *error)
{
	struct npumem_replay *replay;
	json_t *entries = json_array(), *whole = NULL;
	uint64_t n;
	if (npumem_replay_open(path, &replay, error))
		return NULL;
	int status = npumem_replay_each(replay, add_entry, entries, error);
	if (!status)
		whole = json_pack("{s:o, s:O, s:o}", "device", device_of(npumem_replay_info(replay)), "entries",
				  entries, "operations", operations_of(entries));
	if (whole && npumem_replay_cut(replay, &n))
		json_object_set_new(whole, "cut_at_byte", json_integer((json_int_t)npumem_replay_cut(replay, &n)));
	npumem_replay_close(replay);
	return whole;
}
