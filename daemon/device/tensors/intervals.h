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
	struct interval *sub[2]; /* before it, and behind it */
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

/* A walk over those that meet [from, to), in order. Nothing may come or go meanwhile. */
enum { INTERVALS_HEIGHT_MAX = 48 };
struct intervals_walk {
	uint64_t from, to;
	unsigned n;
	struct interval
		*path[INTERVALS_HEIGHT_MAX]; /* not told yet, and with a left subtree that was; the next is last */
};
void intervals_begin(const struct intervals *intervals, uint64_t from, uint64_t to, struct intervals_walk *walk);
/* The next one; NULL: there is none. */
struct interval *intervals_next(struct intervals_walk *walk);

/* The first that meets [from, to) and comes behind (after_from, after_id) in order; NULL: there is none. For walks
 * between whose steps others may come and go. */
struct interval *intervals_after(const struct intervals *intervals, uint64_t from, uint64_t to,
				 uint64_t after_from, uint64_t after_id);

/* NULL, or what is wrong with order, reach or balance. For tests. */
const char *intervals_check(const struct intervals *intervals);

#endif
