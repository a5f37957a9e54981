/* Distances between words: letters put in, left out, replaced, or swapped with a neighbour (optimal string
 * alignment); none to a word that begins with the given one. Owns nothing. Words too long to be slips of each
 * other are not compared. */
#include "client/ctl/core/words/words.h"

#include <stdio.h>
#include <string.h>

static unsigned min(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Of words shorter than SUGGEST_WORD_BYTES. Three rows of the table are enough. */
static unsigned distance(const char *a, const char *b)
{
	unsigned rows[3][SUGGEST_WORD_BYTES + 1], n_a = (unsigned)strlen(a), n_b = (unsigned)strlen(b);
	for (unsigned j = 0; j <= n_b; j++)
		rows[0][j] = j;
	for (unsigned i = 1; i <= n_a; i++) {
		unsigned *row = rows[i % 3], *before = rows[(i + 2) % 3], *twice = rows[(i + 1) % 3];
		row[0] = i;
		for (unsigned j = 1; j <= n_b; j++) {
			row[j] = min(before[j - 1] + (a[i - 1] != b[j - 1]), min(before[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = min(row[j], twice[j - 2] + 1);
		}
	}
	return rows[n_a % 3][n_b];
}

void suggest_init(struct suggest *suggest, const char *word)
{
	size_t length = strlen(word);
	*suggest = (struct suggest){.word = word};
	/* A third of the word may be wrong; of a short one a letter, of an empty one nothing. */
	if (length && length < SUGGEST_WORD_BYTES)
		suggest->distance = (unsigned)(length < 3 ? 1 : length / 3) + 1;
}

void suggest_offer(struct suggest *suggest, const char *known)
{
	size_t length = strlen(known);
	if (!suggest->distance || !length || length >= SUGGEST_WORD_BYTES)
		return;
	size_t given = strlen(suggest->word), longer = given > length ? given : length;
	bool begins = given > 1 && length <= 3 * given && !strncmp(suggest->word, known, given);
	unsigned far = begins ? 0 : distance(suggest->word, known);
	/* A word of which nothing is right is no slip. */
	if (far >= suggest->distance || far >= longer)
		return;
	suggest->distance = far;
	memcpy(suggest->best, known, length + 1);
}

void suggest_offer_list(struct suggest *suggest, const char *list)
{
	struct lists_word word;
	while (lists_next(&list, &word))
		suggest_offer(suggest, word.text);
}

const char *suggest_text(const struct suggest *suggest, char *text)
{
	text[0] = 0;
	if (suggest->best[0])
		snprintf(text, SUGGEST_TEXT_BYTES, "; did you mean \"%s\"?", suggest->best);
	return text;
}
