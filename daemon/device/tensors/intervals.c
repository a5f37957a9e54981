/* Recursive: a tree of 2^32 nodes is at most 46 high, and the device has no more tensors than that.
 * Invariant: the heights of a node's subtrees differ by at most 1, and `reach` is exact in every node. */
#include "daemon/device/tensors/intervals.h"

#include <assert.h>
#include <stddef.h>

static unsigned height(const struct interval *node)
{
	return node ? node->height : 0;
}

static bool before(const struct interval *a, const struct interval *b)
{
	return a->from < b->from || (a->from == b->from && a->id < b->id);
}

/* Sets what follows from a node's subtrees. */
static struct interval *settle(struct interval *node)
{
	node->height = 0;
	node->reach = node->to;
	for (unsigned i = 0; i < 2; i++) {
		if (height(node->sub[i]) > node->height)
			node->height = height(node->sub[i]);
		if (node->sub[i] && node->sub[i]->reach > node->reach)
			node->reach = node->sub[i]->reach;
	}
	node->height++;
	return node;
}

/* Brings up the subtree of one side. */
static struct interval *rotate(struct interval *node, unsigned side)
{
	struct interval *top = node->sub[side];
	node->sub[side] = top->sub[!side];
	top->sub[!side] = settle(node);
	return settle(top);
}

/* The root of a subtree, one of whose sides has grown or shrunk by one. */
static struct interval *balance(struct interval *node)
{
	for (unsigned side = 0; side < 2; side++) {
		struct interval *high = node->sub[side];
		if (height(high) <= height(node->sub[!side]) + 1)
			continue;
		if (height(high->sub[side]) < height(high->sub[!side]))
			node->sub[side] = rotate(high, !side);
		return rotate(node, side);
	}
	return settle(node);
}

static struct interval *insert(struct interval *node, struct interval *interval)
{
	if (!node)
		return settle(interval);
	struct interval **at = &node->sub[before(node, interval)];
	*at = insert(*at, interval);
	return balance(node);
}

void intervals_add(struct intervals *intervals, struct interval *interval)
{
	interval->sub[0] = interval->sub[1] = NULL;
	intervals->root = insert(intervals->root, interval);
}

static struct interval *take_first(struct interval *node, struct interval **first)
{
	if (!node->sub[0]) {
		*first = node;
		return node->sub[1];
	}
	node->sub[0] = take_first(node->sub[0], first);
	return balance(node);
}

static struct interval *take(struct interval *node, const struct interval *interval)
{
	struct interval *first;
	if (node != interval) {
		struct interval **at = &node->sub[before(node, interval)];
		*at = take(*at, interval);
		return balance(node);
	}
	if (!node->sub[1])
		return node->sub[0];
	node->sub[1] = take_first(node->sub[1], &first);
	first->sub[0] = node->sub[0];
	first->sub[1] = node->sub[1];
	return balance(first);
}

void intervals_remove(struct intervals *intervals, struct interval *interval)
{
	intervals->root = take(intervals->root, interval);
}

/* What does not reach `from` is left out with all below it. */
static void go_left(struct intervals_walk *walk, struct interval *node)
{
	for (; node && node->reach > walk->from; node = node->sub[0]) {
		assert(walk->n < INTERVALS_HEIGHT_MAX);
		walk->path[walk->n++] = node;
	}
}

void intervals_begin(const struct intervals *intervals, uint64_t from, uint64_t to, struct intervals_walk *walk)
{
	walk->from = from;
	walk->to = to;
	walk->n = 0;
	go_left(walk, intervals->root);
}

struct interval *intervals_next(struct intervals_walk *walk)
{
	while (walk->n) {
		struct interval *node = walk->path[--walk->n];
		if (node->from >= walk->to)
			break;
		go_left(walk, node->sub[1]);
		if (node->to > walk->from)
			return node;
	}
	walk->n = 0;
	return NULL;
}

static struct interval *first_after(struct interval *node, uint64_t from, uint64_t to,
				    const struct interval *after)
{
	if (!node || node->reach <= from)
		return NULL;
	if (before(after, node)) {
		struct interval *first = first_after(node->sub[0], from, to, after);
		if (first)
			return first;
		if (node->from < to && node->to > from)
			return node;
	}
	return node->from < to ? first_after(node->sub[1], from, to, after) : NULL;
}

struct interval *intervals_after(const struct intervals *intervals, uint64_t from, uint64_t to,
				 uint64_t after_from, uint64_t after_id)
{
	const struct interval after = {.from = after_from, .id = after_id};
	return first_after(intervals->root, from, to, &after);
}

static const char *check(const struct interval *node, const struct interval *low, const struct interval *high)
{
	if (!node)
		return NULL;
	struct interval fresh = *node;
	unsigned left = height(node->sub[0]), right = height(node->sub[1]);
	settle(&fresh);
	if ((low && !before(low, node)) || (high && !before(node, high)))
		return "an interval is out of order";
	if (fresh.reach != node->reach || fresh.height != node->height)
		return "an interval's reach or height is wrong";
	if (left > right + 1 || right > left + 1)
		return "the tree of intervals is out of balance";
	const char *wrong = check(node->sub[0], low, node);
	return wrong ? wrong : check(node->sub[1], node, high);
}

const char *intervals_check(const struct intervals *intervals)
{
	return check(intervals->root, NULL, NULL);
}
