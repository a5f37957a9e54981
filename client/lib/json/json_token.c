/* Invariant: `at` never passes the text's zero byte. */
#include "client/lib/json/json_token.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "client/lib/json/json.h"

int json_token_fail(struct json_reader *reader, const char *format, ...)
{
	char message[NPUMEM_MESSAGE_BYTES];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	npumem_error_set(reader->error, NPUMEM_INVALID, "%s%s%s", reader->path, reader->path_bytes ? ": " : "",
			 message);
	npumem_error_text(reader->error, "field", reader->path);
	npumem_error_number(reader->error, "byte", reader->at - reader->text);
	return NPUMEM_INVALID;
}

/* ---- the path ---- */

size_t json_token_down(struct json_reader *reader, const char *name, size_t index)
{
	size_t before = reader->path_bytes, room = sizeof(reader->path) - before;
	char *to = reader->path + before;
	int n = name ? snprintf(to, room, "%s%s", before ? "." : "", name) : snprintf(to, room, "[%zu]", index);
	reader->path_bytes += (size_t)n < room ? (size_t)n : room - 1;
	return before;
}

void json_token_up(struct json_reader *reader, size_t path_bytes)
{
	reader->path_bytes = path_bytes;
	reader->path[path_bytes] = 0;
}

/* ---- what is there ---- */

char json_token_peek(struct json_reader *reader)
{
	reader->at += strspn(reader->at, " \t\r\n");
	return *reader->at;
}

bool json_token_take(struct json_reader *reader, char c)
{
	bool is_next = json_token_peek(reader) == c;
	reader->at += is_next && c;
	return is_next;
}

bool json_token_word(struct json_reader *reader, const char *word)
{
	size_t length = strlen(word);
	json_token_peek(reader);
	if (strncmp(reader->at, word, length))
		return false;
	reader->at += length;
	return true;
}

int json_token_expect(struct json_reader *reader, char c)
{
	if (json_token_take(reader, c))
		return 0;
	size_t off = (size_t)(reader->at - reader->text);
	if (!*reader->at)
		return json_token_fail(reader, "the text ends at byte %zu, where \"%c\" is missing", off, c);
	if (!c)
		return json_token_fail(reader, "there is more after its end, from byte %zu on: %.20s", off,
				       reader->at);
	return json_token_fail(reader, "byte %zu is \"%.1s\", where \"%c\" is expected", off, reader->at, c);
}

/* ---- strings ---- */

size_t json_token_string_room(struct json_reader *reader)
{
	const char *from;
	if (json_token_peek(reader) != '"')
		return 0;
	from = reader->at + 1;
	/* An escape is longer than what it stands for. */
	for (const char *at = from; *at; at++) {
		if (*at == '"')
			return (size_t)(at - from) + 1;
		at += *at == '\\' && at[1];
	}
	return 0;
}

static int hex4(const char *at)
{
	int value = 0;
	for (unsigned i = 0; i < 4; i++) {
		char c = at[i];
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
			    : c >= 'A' && c <= 'F' ? c - 'A' + 10
						   : -1;
		if (digit < 0)
			return -1;
		value = value << 4 | digit;
	}
	return value;
}

/* The character of an escape \uXXXX, or of two for one beyond the first 65536; -1: it is none. */
static int32_t unicode(struct json_reader *reader)
{
	int32_t high = hex4(reader->at), low;
	if (high < 0)
		return -1;
	reader->at += 4;
	if (high < 0xd800 || high > 0xdfff)
		return high ? high : -1;
	if (high > 0xdbff || reader->at[0] != '\\' || reader->at[1] != 'u')
		return -1;
	low = hex4(reader->at + 2);
	if (low < 0xdc00 || low > 0xdfff)
		return -1;
	reader->at += 6;
	return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

static size_t put_utf8(int32_t c, char *to)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (size_t i = n; i-- > 1; c >>= 6)
		to[i] = (char)(0x80 | (c & 63));
	to[0] = (char)(0xf00 >> n | c);
	return n;
}

/* What follows a backslash. Bytes put at `to`; 0: it is no escape. */
static size_t escape(struct json_reader *reader, char *to)
{
	static const char from[] = "\"\\/bfnrt", as[] = "\"\\/\b\f\n\r\t";
	const char *known = *reader->at ? strchr(from, *reader->at) : NULL;
	if (known) {
		reader->at++;
		*to = as[known - from];
		return 1;
	}
	if (*reader->at != 'u')
		return 0;
	reader->at++;
	int32_t c = unicode(reader);
	return c < 0 ? 0 : put_utf8(c, to);
}

/* One character into to[4]. Its bytes; 0: there is none, as the error says. */
static size_t character(struct json_reader *reader, char *to)
{
	size_t off = (size_t)(reader->at - reader->text), n;
	if (*reader->at == '\\') {
		reader->at++;
		n = escape(reader, to);
		if (!n)
			json_token_fail(reader, "byte %zu begins no escape that a text may have", off);
		return n;
	}
	n = json_utf8((const unsigned char *)reader->at);
	if ((unsigned char)*reader->at < 0x20 || !n) {
		json_token_fail(reader, "byte %zu, 0x%02x, is none of a text in UTF-8", off,
				(unsigned char)*reader->at);
		return 0;
	}
	memcpy(to, reader->at, n);
	reader->at += n;
	return n;
}

int json_token_string(struct json_reader *reader, char *to, size_t room, size_t *bytes)
{
	char one[4];
	size_t n;
	*bytes = 0;
	if (!json_token_string_room(reader))
		return json_token_fail(reader, "byte %zu begins no string in quotes that has an end",
				       (size_t)(reader->at - reader->text));
	reader->at++;
	while (*reader->at != '"') {
		n = character(reader, one);
		if (!n)
			return NPUMEM_INVALID;
		if (n >= room - *bytes)
			return json_token_fail(reader, "a string of %zu bytes and more", room);
		memcpy(to + *bytes, one, n);
		*bytes += n;
	}
	reader->at++;
	to[*bytes] = 0;
	return 0;
}

int json_token_number(struct json_reader *reader, char word[JSON_WORD_BYTES])
{
	size_t n;
	if (json_token_peek(reader) == '"')
		return json_token_string(reader, word, JSON_WORD_BYTES, &n);
	n = strspn(reader->at, "+-.0123456789eE");
	if (!n || n >= JSON_WORD_BYTES)
		return json_token_fail(reader, "is no number");
	memcpy(word, reader->at, n);
	word[n] = 0;
	reader->at += n;
	return 0;
}
