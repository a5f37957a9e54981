/* How wide what people read may be. */
#ifndef CTL_TERMINAL_H
#define CTL_TERMINAL_H

/* Columns of a terminal; 0 where fd is none, or does not say. */
unsigned terminal_columns(int fd);

#endif
