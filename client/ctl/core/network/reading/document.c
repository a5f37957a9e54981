/* Text to JSON values. Knows no operation. Invariant: root is an array that holds every value read. */
#include "client/ctl/core/network/reading/document.h"

#include <stdlib.h>
#include <string.h>

#include "client/ctl/core/memory.h"
#include "client/ctl/core/output/output.h"

enum { DOCUMENT_START_BYTES = 64 << 10, DOCUMENT_BYTES_MAX = 256 << 20 };

static int slurp(FILE *file, char **text, size_t *bytes, struct npumem_error *error)
{
	size_t room = 0;
	*text = NULL;
	*bytes = 0;
	while (!feof(file)) {
		if (*bytes == room) {
			room = room ? 2 * room : DOCUMENT_START_BYTES;
			char *more = room <= DOCUMENT_BYTES_MAX ? realloc(*text, room) : NULL;
			if (!more)
				return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
							"JSON of more than %zu bytes does not fit", *bytes);
			*text = more;
		}
		*bytes += fread(*text + *bytes, 1, room - *bytes, file);
		if (ferror(file))
			return npumem_error_set(error, NPUMEM_INVALID, "reading failed");
	}
	return 0;
}

/* Bytes of white space from `at` on; *line counts. */
static size_t blanks(const char *text, size_t at, size_t bytes, int *line)
{
	size_t from = at;
	for (; at < bytes && strchr(" \t\r\n", text[at]) && text[at]; at++)
		*line += text[at] == '\n';
	return at - from;
}

static int syntax(const json_error_t *why, int line, struct npumem_error *error)
{
	char text[JSON_ERROR_TEXT_LENGTH];
	snprintf(text, sizeof(text), "%s", why->text);
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ')
			*c = ' ';
	return npumem_error_set(error, NPUMEM_INVALID, "line %d, column %d: %s", line + why->line - 1, why->column,
				text);
}

/* All values, one after another. */
static int parse(const char *text, size_t bytes, struct document *document, struct npumem_error *error)
{
	size_t at = 0;
	int line = 1;
	for (at += blanks(text, at, bytes, &line); at < bytes; at += blanks(text, at, bytes, &line)) {
		size_t n = json_array_size(document->root);
		json_error_t why;
		json_t *value =
			json_loadb(text + at, bytes - at,
				   JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
		if (!value)
			return syntax(&why, line, error);
		int *at_line = memory_grow(&document->lines, n, sizeof(*at_line));
		*at_line = line;
		json_array_append_new(document->root, value);
		for (size_t end = at + (size_t)why.position; at < end; at++)
			line += text[at] == '\n';
	}
	return 0;
}

/* jansson has seen to it that it is UTF-8. */
static bool is_plain(const char *text)
{
	while (*text && !terminal_control_bytes(text))
		text++;
	return !*text;
}

/* No string has control characters: names and files are told on terminals, a message is one line. As deep as
 * jansson reads, which is bounded. */
static bool is_printable(const json_t *value)
{
	json_t *object = (json_t *)(uintptr_t)value;
	bool good = !json_is_string(value) || is_plain(json_string_value(value));
	for (size_t i = 0; i < json_array_size(value) && good; i++)
		good = is_printable(json_array_get(value, i));
	for (void *at = json_object_iter(object); at && good; at = json_object_iter_next(object, at))
		good = is_plain(json_object_iter_key(at)) && is_printable(json_object_iter_value(at));
	return good;
}

/* Which of the three forms it is. */
static int shape(struct document *document, struct npumem_error *error)
{
	json_t *first = json_array_get(document->root, 0);
	if (!first)
		return npumem_error_set(error, NPUMEM_INVALID, "there is no operation in it");
	document->operations = document->root;
	if (json_array_size(document->root) > 1)
		return 0;
	if (json_is_object(first) && (json_object_get(first, "operations") || json_object_get(first, "tensors"))) {
		document->whole = first;
		document->operations = json_object_get(first, "operations");
		if (!json_is_array(document->operations))
			return npumem_error_set(error, NPUMEM_INVALID, "\"operations\" is not a list");
	} else if (json_is_array(first)) {
		document->operations = first;
	} else {
		return 0;
	}
	document->lines = NULL;
	return 0;
}

int document_read(FILE *file, struct document *document, struct npumem_error *error)
{
	size_t bytes = 0;
	char *text = NULL;
	*document = (struct document){.root = json_array()};
	int status = slurp(file, &text, &bytes, error);
	if (!status)
		status = parse(text, bytes, document, error);
	free(text);
	if (!status && !is_printable(document->root))
		status = npumem_error_set(error, NPUMEM_INVALID, "a string has a control character in it");
	return status ? status : shape(document, error);
}
