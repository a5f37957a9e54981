/* Lists of words with a space between two, as in kernels.def. Its marks: '>' before the name of an output, '?'
 * behind an optional name, '*' behind a numbered family ("in*": in0, in1, …). */
#ifndef CTL_CORE_LISTS_H
#define CTL_CORE_LISTS_H

#include <stdbool.h>
#include <stddef.h>

struct lists_word {
	char text[64]; /* without its marks */
	bool output, optional, family;
};

/* Takes the first word of *list, moved past it. False at the end. */
bool lists_next(const char **list, struct lists_word *word);
/* Finds `text`; a family also by one of its names, and with `bare` by its own. *word may be changed where it
 * fails. */
bool lists_find(const char *list, const char *text, bool bare, struct lists_word *word);
bool lists_has(const char *list, const char *text);
/* The words without their marks, `gap` between two and `number` behind a family's. Returns `text`. */
const char *lists_text(const char *list, const char *gap, const char *number, char *text, size_t bytes);

#endif
