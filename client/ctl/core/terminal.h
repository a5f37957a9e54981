/* How wide what people read may be, and whether in colours. */
#ifndef CTL_CORE_TERMINAL_H
#define CTL_CORE_TERMINAL_H

#include <stdbool.h>

/* Columns of a terminal; 0 where fd is none, or does not say. */
unsigned terminal_columns(int fd);
/* Whether fd is a terminal with colours that may be used: $NO_COLOR and $TERM are asked. */
bool terminal_colours(int fd);

#endif
