/* Arrays that grow by an item at a time. */
#ifndef CTL_CORE_GROW_H
#define CTL_CORE_GROW_H

#include <stddef.h>

/* Item n, zeroed, behind those of *items, which may move; NULL at first. The caller counts it. NULL: no memory,
 * and *items is as it was. */
void *grow(void **items, size_t n, size_t bytes);

#endif
