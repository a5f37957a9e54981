/* Lists of words as the tables of kernels have them. Owns nothing; a word longer than its room is cut. */
#include "client/ctl/core/words/words.h"

#include <stdio.h>
#include <string.h>

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
