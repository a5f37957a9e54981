/* Splitting in place: what is written is never ahead of what is read. Nothing is expanded. */
#include "client/ctl/core/words/words.h"

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
