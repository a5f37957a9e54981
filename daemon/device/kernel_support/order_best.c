/* A heap of the best so far with the worst of them on top, where a better one replaces it. */
#include "daemon/device/kernel_support/order_best.h"

#include <assert.h>

static bool better(const struct order_best_entry *a, const struct order_best_entry *b)
{
	return a->value != b->value ? a->value > b->value : a->index < b->index;
}

/* Puts `entry` in the hole at `at` of a heap of n, or below it. */
static void sink(struct order_best_entry *entries, int64_t n, int64_t at, struct order_best_entry entry)
{
	for (;;) {
		int64_t child = 2 * at + 1;
		if (child >= n)
			break;
		if (child + 1 < n && better(&entries[child], &entries[child + 1]))
			child++;
		if (!better(&entry, &entries[child]))
			break;
		entries[at] = entries[child];
		at = child;
	}
	entries[at] = entry;
}

static void rise(struct order_best_entry *entries, int64_t at, struct order_best_entry entry)
{
	for (; at > 0 && better(&entries[(at - 1) / 2], &entry); at = (at - 1) / 2)
		entries[at] = entries[(at - 1) / 2];
	entries[at] = entry;
}

void order_best_init(struct order_best *best, struct order_best_entry *entries, int64_t k)
{
	assert(k >= 1);
	*best = (struct order_best){.entries = entries, .n = 0, .k = k};
}

void order_best_offer(struct order_best *best, int64_t value, int64_t index)
{
	struct order_best_entry entry = {value, index};
	if (best->n < best->k)
		rise(best->entries, best->n++, entry);
	else if (better(&entry, &best->entries[0]))
		sink(best->entries, best->n, 0, entry);
}

bool order_best_finish(struct order_best *best, int64_t steps)
{
	for (; steps > 0 && best->sorted < best->n - 1; steps--) {
		int64_t n = best->n - 1 - best->sorted++;
		struct order_best_entry worst = best->entries[0];
		sink(best->entries, n, 0, best->entries[n]);
		best->entries[n] = worst;
	}
	return best->sorted >= best->n - 1;
}
