/* The size is at the front of each element, and the distance from one to the next. */
#include "client/lib/messages/payload.h"

#include <string.h>

enum { SIZED_MOST = 4096 }; /* more is no size, but a member that was never set */

static size_t size_of(const void *element)
{
	size_t size;
	memcpy(&size, element, sizeof(size));
	return size;
}

static bool is_zero(const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i])
			return false;
	return true;
}

int sized_check(const void *array, unsigned n, size_t first, size_t known, const char *what,
		struct npumem_error *error)
{
	size_t size = n ? size_of(array) : known;
	if (size < first || size > SIZED_MOST || size % sizeof(size_t))
		return npumem_error_set(error, NPUMEM_INVALID, "%s: %zu is not a size of it: begin with its INIT",
					what, size);
	for (unsigned i = 0; i < n; i++) {
		const uint8_t *element = (const uint8_t *)array + i * size;
		if (size_of(element) != size)
			return npumem_error_set(error, NPUMEM_INVALID, "%s %u has size %zu, and the first %zu",
						what, i, size_of(element), size);
		if (size > known && !is_zero(element + known, size - known))
			return npumem_error_set(error, NPUMEM_INVALID,
						"%s %u asks for what this version of the library does not know",
						what, i);
	}
	return 0;
}

void sized_get(const void *array, unsigned i, void *to, size_t known)
{
	size_t size = size_of(array);
	memset(to, 0, known);
	memcpy(to, (const uint8_t *)array + i * size, size < known ? size : known);
}
