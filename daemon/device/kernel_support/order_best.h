/* The k best of a sequence, best first: the larger value, and of equal ones the earlier.
 * Takes O(n log k); the memory is the caller's. */
#ifndef DEVICE_ORDER_BEST_H
#define DEVICE_ORDER_BEST_H

#include <stdbool.h>
#include <stdint.h>

struct order_best_entry {
	int64_t value, index;
};

struct order_best {
	struct order_best_entry *entries; /* a heap, the worst on top */
	int64_t n, k;
	int64_t sorted; /* entries at the end that are in their place */
};

/* `entries` has room for k >= 1. */
void order_best_init(struct order_best *best, struct order_best_entry *entries, int64_t k);
/* One of the sequence; indices are told apart and need not come in order. */
void order_best_offer(struct order_best *best, int64_t value, int64_t index);
/* Puts at most `steps` more entries in their place, of k in all; true once they are sorted, best first. Nothing
 * may be offered after the first call. */
bool order_best_finish(struct order_best *best, int64_t steps);

#endif
