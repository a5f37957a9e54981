/* A line's words, as a shell splits them. */
#ifndef CTL_CORE_WORDS_H
#define CTL_CORE_WORDS_H

#include <npumem/types.h>

/* Splits the first command of `line`, which it changes, at blanks. '...' and "..." hold blanks and ;, \ holds the
 * letter after it (not within '...'). # at a word's beginning ends the line. ; ends the command: *rest is the text
 * after it, else NULL. *n words, at most `most`, that point into the line. 0 or INVALID: a quote that does not end,
 * too many words; *rest is NULL then. */
int words_split(char *line, char **words, unsigned most, unsigned *n, char **rest, struct npumem_error *error);

#endif
