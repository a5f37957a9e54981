/* Arrays that grow by an item at a time. */
#ifndef CTL_CORE_GROW_H
#define CTL_CORE_GROW_H

#include <stddef.h>

/* `items` is the address of a pointer to n items of `bytes` each, NULL where n is 0. Item n, zeroed, behind them;
 * all may move. The caller counts it. NULL: no memory, and they are as they were. */
void *grow(void *items, size_t n, size_t bytes);

#endif
