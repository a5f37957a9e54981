#include <stdlib.h>

#include "client/lib/connection/engine/engine.h"
#include "tests/support/test.h"

TEST(any_order_of_adding_and_taking)
{
	struct pending_table table = {0};
	struct pending taken;
	bool in[2000] = {false};
	uint32_t state = 7;
	uint64_t next = 1;
	unsigned used = 0;
	for (unsigned step = 0; step < 5000; step++) {
		state = state * 1664525 + 1013904223;
		if (next < 2000 && (state >> 16) % 3) {
			ck_assert_int_eq(pending_reserve(&table, &memory_libc), 0);
			pending_add(&table, &(struct pending){.id = next, .bytes = next});
			in[next++] = true;
			used++;
			continue;
		}
		uint64_t id = (state >> 8) % 2000;
		bool found = pending_take(&table, id, &taken);
		ck_assert_int_eq(found, in[id]);
		if (found) {
			ck_assert_uint_eq(taken.id, id);
			ck_assert_uint_eq(taken.bytes, id);
			in[id] = false;
			used--;
		}
		ck_assert_uint_eq(table.used, used);
	}
	ck_assert_uint_gt(used, 0);
	for (uint64_t id = 0; id < 2000; id++) {
		ck_assert_int_eq(pending_find(&table, id) != NULL, in[id]);
		ck_assert_int_eq(pending_take(&table, id, &taken), in[id]);
	}
	ck_assert_uint_eq(table.used, 0);
	ck_assert(!pending_take(&table, 1, &taken));
	pending_deinit(&table, &memory_libc);
}

/* One request that stays open must not make the table grow with those that come and go. */
TEST(a_long_request_costs_no_memory)
{
	struct pending_table table = {0};
	struct pending taken;
	ck_assert_int_eq(pending_reserve(&table, &memory_libc), 0);
	pending_add(&table, &(struct pending){.id = 1});
	unsigned slots = table.n_slots;
	for (uint64_t id = 2; id < 100000; id++) {
		ck_assert_int_eq(pending_reserve(&table, &memory_libc), 0);
		pending_add(&table, &(struct pending){.id = id});
		ck_assert(pending_take(&table, id, &taken));
	}
	ck_assert_uint_eq(table.n_slots, slots);
	ck_assert(pending_take(&table, 1, &taken));
	pending_deinit(&table, &memory_libc);
}

/* Ids far apart share slots, which ids in a row never do. */
TEST(ids_that_collide)
{
	struct pending_table table = {0};
	struct pending taken;
	bool in[30] = {false};
	uint32_t state = 5;
	for (unsigned step = 0; step < 50000; step++) {
		state = state * 1664525 + 1013904223;
		unsigned i = (state >> 10) % 30;
		/* Ten homes in the whole table, the last ones, so that runs of entries go around its end. */
		uint64_t id = (uint64_t)(i / 10 + 1) * 64 * 1024 + 54 + i % 10;
		ck_assert_int_eq(pending_reserve(&table, &memory_libc), 0);
		ck_assert_int_eq(pending_take(&table, id, &taken), in[i]);
		in[i] = (state >> 24) % 2;
		if (in[i])
			pending_add(&table, &(struct pending){.id = id});
	}
	ck_assert_uint_eq(table.n_slots, 64);
	pending_deinit(&table, &memory_libc);
}
