/* Tensors by name or by pattern. */
#ifndef CTL_SELECTION_H
#define CTL_SELECTION_H

#include "client/ctl/ctl.h"

/* Those found, each once, in the daemon's order. */
struct selection {
	const struct npumem_tensor **list;
	unsigned n;
};

/* True of a word with *, ? or [, which is a pattern. */
bool selection_is_pattern(const char *word);
/* The tensors whose names are among the words, or fit a pattern of them (shell patterns; UID:PATTERN for another
 * uid's); no words: all that one may know of. CTL_OK; CTL_FAILED where a word finds none. */
int selection_all(struct ctl *ctl, uint32_t uid, const char *const *words, unsigned n_words,
		  struct selection *selection);

#endif
