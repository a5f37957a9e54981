/* A line's words, as a shell splits them. */
#ifndef CTL_CORE_WORDS_H
#define CTL_CORE_WORDS_H

#include <npumem/types.h>

/* Splits `line`, which it changes, at blanks: '...' and "..." hold blanks, \ the letter after it (not within
 * '...'), and # at a word's beginning ends the line. *n words, at most `most`, that point into the line. 0 or
 * INVALID: a quote that does not end, too many words. */
int words_split(char *line, char **words, unsigned most, unsigned *n, struct npumem_error *error);

#endif
