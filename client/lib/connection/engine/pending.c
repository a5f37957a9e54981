/* The table of messages in flight. Invariant: no free slot lies between an entry's home (id mod slots) and its
 * place, so that a search may stop at the first free one; at most half of the slots are used. */
#include "client/lib/connection/engine/engine.h"

#include <errno.h>
#include <string.h>

enum { PENDING_SLOTS_LEAST = 64, PENDING_SLOTS_MOST = 1 << 30 };

static struct pending *pending_slot(const struct pending_table *table, uint64_t id)
{
	unsigned i = (unsigned)id & (table->n_slots - 1);
	while (table->slots[i].id && table->slots[i].id != id)
		i = (i + 1) & (table->n_slots - 1);
	return &table->slots[i];
}

int pending_reserve(struct pending_table *table, const struct memory *memory)
{
	if (table->used < table->n_slots / 2)
		return 0;
	if (table->n_slots >= PENDING_SLOTS_MOST)
		return -ENOMEM;
	struct pending_table bigger = {.n_slots = table->n_slots ? 2 * table->n_slots : PENDING_SLOTS_LEAST};
	bigger.slots = memory_array(memory, bigger.n_slots, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	memset(bigger.slots, 0, bigger.n_slots * sizeof(*bigger.slots));
	for (unsigned i = 0; i < table->n_slots; i++)
		if (table->slots[i].id)
			pending_add(&bigger, &table->slots[i]);
	memory_free(memory, table->slots);
	*table = bigger;
	return 0;
}

void pending_add(struct pending_table *table, const struct pending *pending)
{
	*pending_slot(table, pending->id) = *pending;
	table->used++;
}

static void pending_remove(struct pending_table *table, struct pending *slot)
{
	unsigned mask = table->n_slots - 1, hole = (unsigned)(slot - table->slots);
	for (unsigned i = (hole + 1) & mask; table->slots[i].id; i = (i + 1) & mask) {
		unsigned home = (unsigned)table->slots[i].id & mask;
		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		table->slots[hole] = table->slots[i];
		hole = i;
	}
	table->slots[hole].id = 0;
	table->used--;
}

struct pending *pending_find(const struct pending_table *table, uint64_t id)
{
	struct pending *slot = id && table->n_slots ? pending_slot(table, id) : NULL;
	return slot && slot->id ? slot : NULL;
}

bool pending_take(struct pending_table *table, uint64_t id, struct pending *pending)
{
	struct pending *slot = pending_find(table, id);
	if (!slot)
		return false;
	*pending = *slot;
	pending_remove(table, slot);
	return true;
}

void pending_deinit(struct pending_table *table, const struct memory *memory)
{
	memory_free(memory, table->slots);
	*table = (struct pending_table){0};
}
