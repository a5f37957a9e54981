/* How wide what people read may be, whether in colours, and what no text may hold. */
#ifndef CTL_CORE_TERMINAL_H
#define CTL_CORE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Columns of a terminal; 0 where fd is none, or does not say. */
unsigned terminal_columns(int fd);
/* Whether fd is a terminal with colours that may be used: $NO_COLOR and $TERM are asked. */
bool terminal_colours(int fd);

/* Bytes of what a terminal takes for a command, a line's end or another direction, at `text`, which is UTF-8; 0 where
 * there is none. */
size_t terminal_control_bytes(const char *text);
/* Prints a text of a file, with a question mark in the place of each of these. */
void terminal_put(FILE *out, const char *text);

#endif
