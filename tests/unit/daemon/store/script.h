/* An endless script of changes, numbered from 0, each of them known from its number; and what a state holds after
 * so many of them. */
#ifndef TESTS_UNIT_DAEMON_STORE_SCRIPT_H
#define TESTS_UNIT_DAEMON_STORE_SCRIPT_H

#include "tests/unit/daemon/store/state.h"

enum {
	SCRIPT_CELLS = 90, /* of each table; more than there are at first */
	SCRIPT_PLACES = 8, /* of local memory, that are written in turn */
	SCRIPT_PLACE_BYTES = 250,
};

struct script_change {
	enum store_table table;
	uint32_t index;
	bool is_drop;
	uint64_t stamp;
	char text[STORE_RESULT_BYTES_MAX];
	size_t bytes;
};

static inline uint64_t script_hash(uint64_t number)
{
	number = (number ^ number >> 31) * UINT64_C(0x9e3779b97f4a7c15);
	number = (number ^ number >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
	return number ^ number >> 32;
}

static inline unsigned script_n_changes(uint64_t number)
{
	return 1 + (unsigned)(script_hash(number) % 4);
}

static inline struct script_change script_change(uint64_t number, unsigned i)
{
	uint64_t hash = script_hash(number * 16 + i + 1);
	uint32_t most = number < SCRIPT_CELLS ? (uint32_t)number + 1 : SCRIPT_CELLS;
	/* Some cells are changed often, also within a transaction and from one to the next. */
	if (hash >> 44 & 1 && most > 3)
		most = 3;
	struct script_change change = {
		.table = (enum store_table)(hash % STORE_TABLES),
		.index = (uint32_t)(hash >> 8) % most,
		.is_drop = hash >> 40 & 3 ? false : true,
		.stamp = hash,
	};

	change.bytes = 8 + (hash >> 48) % (sizeof(change.text) - 8);
	for (size_t at = 0; at < change.bytes; at++)
		change.text[at] = (char)(hash >> 8 * (at % 8));
	return change;
}

/* Does one, up to its commit; or nothing of it where there is no room. */
static inline int script_try(struct store *store, uint64_t number)
{
	unsigned n = script_n_changes(number);
	for (unsigned i = 0; i < n; i++) {
		struct script_change change = script_change(number, i);
		int status = store_prepare(store, change.table, change.index + 1, n);
		if (status)
			return status;
	}
	for (unsigned i = 0; i < n; i++) {
		struct script_change change = script_change(number, i);
		if (change.is_drop)
			store_drop(store, change.table, change.index, change.stamp);
		else
			store_put(store, change.table, change.index, change.text, change.bytes);
	}
	store_commit(store);
	return 0;
}

static inline void script_do(struct store *store, uint64_t number)
{
	ck_assert_int_eq(script_try(store, number), 0);
}

static inline char *script_place(struct store *store, uint64_t number)
{
	return (char *)store_memory(store) + number % SCRIPT_PLACES * SCRIPT_PLACE_BYTES;
}

/* What a state holds after the first `n`. */
struct script_model {
	uint64_t n;
	struct script_change cells[STORE_TABLES][SCRIPT_CELLS]; /* no bytes: as it was at first */
};

static inline void script_advance(struct script_model *model, uint64_t n)
{
	for (; model->n < n; model->n++)
		for (unsigned i = 0; i < script_n_changes(model->n); i++) {
			struct script_change change = script_change(model->n, i);
			model->cells[change.table][change.index] = change;
		}
}

static inline bool script_cell_is(const struct store *store, enum store_table table, uint32_t index,
				  const struct script_change *change)
{
	size_t bytes;
	const void *cell = store_cell(store, table, index, &bytes);
	bool is_used = change->bytes && !change->is_drop;
	if (store_is_lost(store, table, index))
		return false;
	if (is_used)
		return cell && bytes == change->bytes && !memcmp(cell, change->text, bytes);
	return !cell && store_stamp(store, table, index) == (change->bytes ? change->stamp : 0);
}

static inline bool script_holds(const struct store *store, const struct script_model *model)
{
	static const struct script_change none;
	for (enum store_table table = 0; table < STORE_TABLES; table++)
		for (uint32_t index = 0; index < store_n_cells(store, table) || index < SCRIPT_CELLS; index++)
			if (!script_cell_is(store, table, index,
					    index < SCRIPT_CELLS ? &model->cells[table][index] : &none))
				return false;
	return true;
}

#endif
