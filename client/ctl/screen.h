/* The terminal's width. */
#ifndef CTL_SCREEN_H
#define CTL_SCREEN_H

#include <stdio.h>

/* Columns of the terminal that `file` is; where it is none, more than any text has, so that a pipe gets whole
 * lines.
 */
unsigned screen_columns(FILE *file);

#endif
