/* Structs of the caller that begin with their size: an older program's are shorter than ours, a later one's
 * longer, with members that we know nothing of. */
#ifndef CLIENT_LIB_SIZED_H
#define CLIENT_LIB_SIZED_H

#include <npumem/types.h>

/* The end of a member: of the last one that the first version of the library had. */
#define SIZED_UP_TO(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

/* An array of n such structs, all of one size. `first`: what the first version of the library had, `known`: ours.
 * 0; INVALID: shorter than it ever was, of sizes that differ, or a member that is unknown here is not zero. */
int sized_check(const void *array, unsigned n, size_t first, size_t known, const char *what,
		struct npumem_error *error);
/* Element i of a checked array, as we know it: what it lacks is zero. */
void sized_get(const void *array, unsigned i, void *to, size_t known);

#endif
