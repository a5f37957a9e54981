/* Invariant: n says how much room there is: 16 items, or the power of two that n is not above. */
#include "client/ctl/core/grow.h"

#include <stdlib.h>
#include <string.h>

enum { GROW_LEAST = 16 };

void *grow(void *items, size_t n, size_t bytes)
{
	char *array;
	memcpy(&array, items, sizeof(array)); /* a pointer of any type may not be read through a void ** */
	if (!n || (n >= GROW_LEAST && !(n & (n - 1)))) {
		array = realloc(array, (n ? 2 * n : GROW_LEAST) * bytes);
		if (!array)
			return NULL;
		memcpy(items, &array, sizeof(array));
	}
	return memset(array + n * bytes, 0, bytes);
}
