/* "Did you mean": the known word nearest to one that is not known. */
#ifndef CTL_CORE_SUGGEST_H
#define CTL_CORE_SUGGEST_H

#include <stddef.h>

enum { SUGGEST_WORD_BYTES = 64, SUGGEST_TEXT_BYTES = SUGGEST_WORD_BYTES + 32 };

struct suggest {
	const char *word; /* what was written */
	char best[SUGGEST_WORD_BYTES];
	unsigned distance; /* of best; more than a slip of the pen counts as none */
};

void suggest_init(struct suggest *suggest, const char *word);
/* Offers one known word; the first of those that are as near stays. */
void suggest_offer(struct suggest *suggest, const char *known);
/* Offers each of a space separated list; the marks of kernels.def ('>', '?', '*') are left out. */
void suggest_offer_list(struct suggest *suggest, const char *list);
/* "; did you mean \"x\"?", or "" where no known word is near. Returns `text`, SUGGEST_TEXT_BYTES long. */
const char *suggest_text(const struct suggest *suggest, char *text);

#endif
