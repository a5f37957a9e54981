/* The memory of a command. There always is some: where the system has none, the program says so and ends with 1.
 * All of it goes when the command has ended; what a loop makes again and again, the loop gives back. JSON lies in
 * it, too.
 */
#ifndef CTL_CORE_MEMORY_H
#define CTL_CORE_MEMORY_H

#include <stddef.h>

/* n zeroed items. */
void *memory_new(size_t n, size_t bytes);
/* printf style, as long as it takes. */
char *memory_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* `items` is the address of a pointer to n items of `bytes` each, NULL where n is 0. Item n, zeroed, behind them;
 * all may move. The caller counts it. */
void *memory_grow(void *items, size_t n, size_t bytes);
/* For what a file or a tensor holds: n items, not zeroed. NULL: there is not so much, which the caller says. */
void *memory_data(size_t n, size_t bytes);

/* Says that there is none, and ends the program. */
void memory_none(void) __attribute__((noreturn));

/* Gives a block back before its time. NULL is allowed. */
void memory_free(void *block);
/* The command has ended. */
void memory_end(void);

#endif
