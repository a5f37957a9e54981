/* The k best of a sequence, best first: the larger value, and of equal ones the earlier.
 * Takes O(n log k); the memory is the caller's. */
#ifndef DEVICE_KERNEL_SUPPORT_ORDER_BEST_H
#define DEVICE_KERNEL_SUPPORT_ORDER_BEST_H

#include <stdint.h>

struct order_best_entry {
	int64_t value, index;
};

struct order_best {
	struct order_best_entry *entries; /* a heap, the worst on top */
	int64_t n, k;
};

/* `entries` has room for k >= 1. */
void order_best_init(struct order_best *best, struct order_best_entry *entries, int64_t k);
/* One of the sequence; indices are told apart and need not come in order. */
void order_best_offer(struct order_best *best, int64_t value, int64_t index);
/* Sorts the entries, best first. Nothing may be offered after it. */
void order_best_finish(struct order_best *best);

#endif
