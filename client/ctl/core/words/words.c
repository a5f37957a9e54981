/* Splitting in place: what is written is never ahead of what is read. Nothing is expanded. */
#include "client/ctl/core/words/words.h"

#include <stdio.h>
#include <string.h>

static bool is_blank(char letter)
{
	return letter == ' ' || letter == '\t' || letter == '\n' || letter == '\r';
}

/* One word at *at, written to *to without its quotes; both moved past it. False where a quote does not end. */
static bool take(char **at, char **to)
{
	char quote = 0;
	for (; **at && (quote || (!is_blank(**at) && **at != ';')); ++*at) {
		char letter = **at;
		if (letter == quote) {
			quote = 0;
			continue;
		}
		if (!quote && (letter == '\'' || letter == '"')) {
			quote = letter;
			continue;
		}
		if (letter == '\\' && quote != '\'' && (*at)[1])
			letter = *++*at;
		*(*to)++ = letter;
	}
	return !quote;
}

int words_split(char *line, char **words, unsigned most, unsigned *n, char **rest, struct npumem_error *error)
{
	char *at = line, *to = line;
	*rest = NULL;
	for (*n = 0;;) {
		while (is_blank(*at))
			at++;
		if (!*at || *at == '#')
			return 0;
		if (*at == ';') {
			*rest = at + 1;
			return 0;
		}
		if (*n == most)
			return npumem_error_set(error, NPUMEM_INVALID, "more than %u words in a line", most);
		words[(*n)++] = to;
		if (!take(&at, &to))
			return npumem_error_set(error, NPUMEM_INVALID, "a quote does not end");
		/* The end of the word may be where the next blank is. */
		char end = *at;
		*to++ = 0;
		if (end == ';')
			*rest = at + 1;
		if (!end || end == ';')
			return 0;
		at++;
	}
}

/* Lists of words as the tables of kernels have them. Owns nothing; a word longer than its room is cut. */

bool lists_next(const char **list, struct lists_word *word)
{
	const char *at = *list + strspn(*list, " ");
	*word = (struct lists_word){.output = *at == '>'};
	at += word->output;
	size_t length = strcspn(at, " ?*");
	snprintf(word->text, sizeof(word->text), "%.*s", (int)length, at);
	for (at += length; *at == '?' || *at == '*'; at++)
		*(*at == '?' ? &word->optional : &word->family) = true;
	*list = at;
	return length > 0;
}

static bool matches(const struct lists_word *word, const char *text, bool bare)
{
	size_t length = strlen(word->text);
	if (strncmp(word->text, text, length))
		return false;
	size_t digits = strspn(text + length, "0123456789");
	if (text[length + digits])
		return false;
	return word->family ? digits <= 3 && (digits || bare) : !digits;
}

bool lists_find(const char *list, const char *text, bool bare, struct lists_word *word)
{
	while (lists_next(&list, word))
		if (matches(word, text, bare))
			return true;
	return false;
}

bool lists_has(const char *list, const char *text)
{
	struct lists_word word;
	return lists_find(list, text, false, &word);
}

const char *lists_text(const char *list, const char *gap, const char *number, char *text, size_t bytes)
{
	struct lists_word word;
	int n = snprintf(text, bytes, "%s", "");
	while (lists_next(&list, &word) && (size_t)n < bytes)
		n += snprintf(text + n, bytes - (size_t)n, "%s%s%s", n ? gap : "", word.text,
			      word.family ? number : "");
	return text;
}
