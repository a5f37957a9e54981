/* Invariant: n says how much room there is: 16 items, or the power of two that n is not above. */
#include "client/ctl/core/grow.h"

#include <stdlib.h>
#include <string.h>

enum { GROW_LEAST = 16 };

void *grow(void **items, size_t n, size_t bytes)
{
	if (!n || (n >= GROW_LEAST && !(n & (n - 1)))) {
		void *moved = realloc(*items, (n ? 2 * n : GROW_LEAST) * bytes);
		if (!moved)
			return NULL;
		*items = moved;
	}
	return memset((char *)*items + n * bytes, 0, bytes);
}
