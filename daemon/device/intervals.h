/* A set of half-open intervals, and which of them meet a range: O(log n) for each that does.
 *
 * Owns nothing: the nodes lie in their users' structs, so that no call can fail. A balanced tree (Adelson-Velsky
 * and Landis, 1962) and not a random one, since clients choose what goes in and out, and in which order. */
#ifndef DEVICE_INTERVALS_H
#define DEVICE_INTERVALS_H

#include <stdbool.h>
#include <stdint.h>

struct interval {
	uint64_t from, to,
		id;	/* [from, to), not empty; of equal `from` the lower id comes first, and no two are equal */
	uint64_t reach; /* the largest `to` of its subtree */
	struct interval *left, *right;
	unsigned height;
};

/* Empty when zeroed. */
struct intervals {
	struct interval *root;
};

/* Its from, to and id are set, and do not change while it is in. */
void intervals_add(struct intervals *intervals, struct interval *interval);
/* It is in. */
void intervals_remove(struct intervals *intervals, struct interval *interval);

/* The first, in order of `from`, after `after` (NULL: of all) that meets [from, to); NULL: there is none. `after`
 * may be out of the set by now. */
struct interval *intervals_next(const struct intervals *intervals, const struct interval *after, uint64_t from,
				uint64_t to);

/* NULL, or what is wrong with order, reach or balance. For tests. */
const char *intervals_check(const struct intervals *intervals);

#endif
