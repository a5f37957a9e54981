/* The error object: filled by the first refusal, read by programs and people.
 * A message is one line of whole UTF-8 characters, whatever a peer put into the values that it quotes: it ends up
 * in terminals, logs and protobuf strings. Owns no memory. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <npumem/types.h>

void npumem_error_clear(struct npumem_error *error)
{
	/* What is behind these is read only as far as they say, and it is kilobytes. */
	error->status = 0;
	error->message[0] = '\0';
	error->n_fields = 0;
}

/* The length of the UTF-8 character at `text`, and its number; 0 where there is none, an overlong or a surrogate one
 * included. */
static size_t character_length(const unsigned char *text, uint32_t *point)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	*point = text[0];
	if (text[0] < 0x80)
		return 1;
	size_t length = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
	*point &= 0xff >> (length + 1);
	for (size_t i = 1; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		*point = *point << 6 | (text[i] & 0x3f);
	}
	bool valid = text[0] >= 0xc0 && text[0] < 0xf8 && *point >= least[length] && *point <= 0x10ffff &&
		     *point >> 11 != 0x1b;
	return valid ? length : 0;
}

/* What terminals take for a command (U+009B begins one as ESC [ does), a line's end, or the other direction. */
static bool is_control(uint32_t point)
{
	return point < 0x20 || (point >= 0x7f && point < 0xa0) || (point >= 0x2028 && point <= 0x202e) ||
	       (point >= 0x2066 && point <= 0x2069);
}

/* Quoted values may carry line ends, terminal escapes, or bytes that are no text; a long one may have been cut in
 * the middle of a character. */
static void make_printable(char *text)
{
	char *to = text;
	while (*text) {
		uint32_t point;
		size_t length = character_length((const unsigned char *)text, &point);
		if (length == 0 || is_control(point)) {
			*to++ = '?';
			text += length ? length : 1;
			continue;
		}
		memmove(to, text, length);
		to += length;
		text += length;
	}
	*to = 0;
}

int npumem_error_set(struct npumem_error *error, int status, const char *format, ...)
{
	if (!error || error->status != 0)
		return status;
	error->status = status;
	va_list arguments;
	va_start(arguments, format);
	int length = vsnprintf(error->message, sizeof(error->message), format, arguments);
	va_end(arguments);
	if (length < 0)
		error->message[0] = 0;
	make_printable(error->message);
	return status;
}

static bool has_key(const struct npumem_error *error, const char *key)
{
	for (unsigned i = 0; i < error->n_fields; i++) {
		if (!strncmp(error->fields[i].key, key, NPUMEM_FIELD_KEY_BYTES - 1))
			return true;
	}
	return false;
}

/* NULL where there is no room, or where an earlier refusal has said it already. */
static struct npumem_field *field_new(struct npumem_error *error, const char *key)
{
	if (!error || error->n_fields >= NPUMEM_FIELDS_MAX || has_key(error, key))
		return NULL;
	struct npumem_field *field = &error->fields[error->n_fields++];
	memset(field, 0, sizeof(*field));
	snprintf(field->key, sizeof(field->key), "%s", key);
	return field;
}

void npumem_error_number(struct npumem_error *error, const char *key, int64_t number)
{
	struct npumem_field *field = field_new(error, key);
	if (field)
		field->number = number;
}

void npumem_error_text(struct npumem_error *error, const char *key, const char *text)
{
	struct npumem_field *field = field_new(error, key);
	if (!field)
		return;
	field->is_text = true;
	snprintf(field->text, sizeof(field->text), "%s", text);
	make_printable(field->text);
}

int64_t npumem_error_find(const struct npumem_error *error, const char *key, int64_t fallback)
{
	for (unsigned i = 0; i < error->n_fields; i++) {
		const struct npumem_field *field = &error->fields[i];
		if (!field->is_text && !strncmp(field->key, key, NPUMEM_FIELD_KEY_BYTES - 1))
			return field->number;
	}
	return fallback;
}
