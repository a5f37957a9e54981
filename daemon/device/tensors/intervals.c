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
	unsigned left = height(node->left), right = height(node->right);
	node->height = 1 + (left > right ? left : right);
	node->reach = node->to;
	if (node->left && node->left->reach > node->reach)
		node->reach = node->left->reach;
	if (node->right && node->right->reach > node->reach)
		node->reach = node->right->reach;
	return node;
}

static struct interval *rotate_right(struct interval *node)
{
	struct interval *top = node->left;
	node->left = top->right;
	top->right = settle(node);
	return settle(top);
}

static struct interval *rotate_left(struct interval *node)
{
	struct interval *top = node->right;
	node->right = top->left;
	top->left = settle(node);
	return settle(top);
}

/* The root of a subtree, one of whose sides has grown or shrunk by one. */
static struct interval *balance(struct interval *node)
{
	if (height(node->left) > height(node->right) + 1) {
		if (height(node->left->left) < height(node->left->right))
			node->left = rotate_left(node->left);
		return rotate_right(node);
	}
	if (height(node->right) > height(node->left) + 1) {
		if (height(node->right->right) < height(node->right->left))
			node->right = rotate_right(node->right);
		return rotate_left(node);
	}
	return settle(node);
}

static struct interval *add(struct interval *node, struct interval *interval)
{
	if (!node)
		return settle(interval);
	if (before(interval, node))
		node->left = add(node->left, interval);
	else
		node->right = add(node->right, interval);
	return balance(node);
}

void intervals_add(struct intervals *intervals, struct interval *interval)
{
	interval->left = interval->right = NULL;
	intervals->root = add(intervals->root, interval);
}

static struct interval *take_first(struct interval *node, struct interval **first)
{
	if (!node->left) {
		*first = node;
		return node->right;
	}
	node->left = take_first(node->left, first);
	return balance(node);
}

static struct interval *join(struct interval *left, struct interval *right)
{
	struct interval *first;
	if (!right)
		return left;
	right = take_first(right, &first);
	first->left = left;
	first->right = right;
	return balance(first);
}

static struct interval *take(struct interval *node, const struct interval *interval)
{
	if (node == interval)
		return join(node->left, node->right);
	if (before(interval, node))
		node->left = take(node->left, interval);
	else
		node->right = take(node->right, interval);
	return balance(node);
}

void intervals_remove(struct intervals *intervals, struct interval *interval)
{
	intervals->root = take(intervals->root, interval);
}

/* What does not reach `from` is left out with all below it. */
static void go_left(struct intervals_walk *walk, struct interval *node)
{
	for (; node && node->reach > walk->from; node = node->left) {
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
		go_left(walk, node->right);
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
		struct interval *first = first_after(node->left, from, to, after);
		if (first)
			return first;
		if (node->from < to && node->to > from)
			return node;
	}
	return node->from < to ? first_after(node->right, from, to, after) : NULL;
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
	unsigned left = height(node->left), right = height(node->right);
	settle(&fresh);
	if ((low && !before(low, node)) || (high && !before(node, high)))
		return "an interval is out of order";
	if (fresh.reach != node->reach || fresh.height != node->height)
		return "an interval's reach or height is wrong";
	if (left > right + 1 || right > left + 1)
		return "the tree of intervals is out of balance";
	const char *wrong = check(node->left, low, node);
	return wrong ? wrong : check(node->right, node, high);
}

const char *intervals_check(const struct intervals *intervals)
{
	return check(intervals->root, NULL, NULL);
}
