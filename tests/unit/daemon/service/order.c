/* The order of operations against a plain simulation: who overlaps whom is told by byte ranges alone. */
#include "daemon/service/order.h"

#include <check.h>
#include <stdlib.h>

#include "daemon/device/geometry/intersect.h"

enum { N_ENTRIES = 40, N_ROUNDS = 300, N_BYTES = 24 };

struct entry {
	struct order_entry order; /* first, so that the one is the other */
	struct order_access accesses[2];
	int64_t from[2], to[2];
	bool writes[2], barrier, finished, changes, follows, alone;
	int owner;
	bool finish_at_once;
	unsigned started_at; /* 0: not yet */
};

static const struct npumem_geometry geometry = {.n_npus = 1, .npu_bytes = 1024, .n_banks = 8, .eu_bytes = 4};
static struct order order;
static struct entry entries[N_ENTRIES];
static unsigned n_entries, clock_now, n_refreshed;

static struct npumem_place place_of(int64_t from, int64_t to)
{
	struct npumem_spec spec;
	struct npumem_place place;
	npumem_spec_init(&spec);
	spec.dtype = NPUMEM_INT32;
	spec.layout = NPUMEM_COMPACT;
	spec.shape = (struct npumem_dims){1, 1, 1, to - from};
	spec.address = from * 4;
	ck_assert_int_eq(npumem_place_resolve(&geometry, &spec, &place, NULL), 0);
	return place;
}

/* `a` was sent first. */
static bool simulated_conflict(const struct entry *a, const struct entry *b)
{
	if (a->barrier || b->barrier)
		return true;
	if (a->owner == b->owner && (a->alone || b->alone || (a->changes && b->follows)))
		return true;
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 2; j++)
			if ((a->writes[i] || b->writes[j]) && a->from[i] < b->to[j] && b->from[j] < a->to[i])
				return true;
	return false;
}

static void on_start(struct order_entry *started)
{
	struct entry *entry = (struct entry *)started;
	ck_assert(!entry->started_at);
	for (struct entry *earlier = entries; earlier < entry; earlier++)
		ck_assert_msg(earlier->finished || !simulated_conflict(earlier, entry),
			      "entry %td started before the conflicting %td was finished", entry - entries,
			      earlier - entries);
	for (struct entry *later = entry + 1; later < entries + n_entries; later++)
		ck_assert_msg(!later->started_at || later->finished || !simulated_conflict(entry, later),
			      "entry %td started beside the conflicting %td", entry - entries, later - entries);
	entry->started_at = ++clock_now;
	if (entry->finish_at_once) {
		entry->finished = true;
		order_finish(&order, started);
	}
}

static void draw_accesses(struct entry *entry)
{
	for (int i = 0; i < 2; i++) {
		entry->from[i] = rand() % N_BYTES;
		entry->to[i] = entry->from[i] + 1 + rand() % 6;
		entry->writes[i] = rand() % 2;
		entry->accesses[i] = (struct order_access){place_of(entry->from[i], entry->to[i]), KINDS_DATA,
							   entry->writes[i], false};
	}
}

/* Tensors lie elsewhere now. */
static void on_refresh(struct order_entry *waiting)
{
	ck_assert(!waiting->started);
	if (rand() % 2)
		draw_accesses((struct entry *)waiting);
	n_refreshed++;
}

/* Whatever may start has started. */
static void check_nothing_idle(void)
{
	for (unsigned i = 0; i < n_entries; i++) {
		bool blocked = false;
		for (unsigned j = 0; j < i; j++)
			blocked |= !entries[j].finished && simulated_conflict(&entries[j], &entries[i]);
		for (unsigned j = i + 1; j < n_entries; j++)
			blocked |= entries[j].started_at && !entries[j].finished &&
				   simulated_conflict(&entries[i], &entries[j]);
		ck_assert_msg(blocked || entries[i].started_at, "entry %u could start and has not", i);
	}
}

static void add_random(void)
{
	struct entry *entry = &entries[n_entries++];
	*entry = (struct entry){.barrier = rand() % 12 == 0,
				.finish_at_once = rand() % 4 == 0,
				.changes = rand() % 8 == 0,
				.follows = rand() % 4 == 0,
				.alone = rand() % 12 == 0,
				.owner = rand() % 3};
	draw_accesses(entry);
	entry->order = (struct order_entry){.accesses = entry->accesses,
					    .n_accesses = 2,
					    .barrier = entry->barrier,
					    .changes = entry->changes,
					    .follows = entry->follows,
					    .alone = entry->alone,
					    .owner = &entries[entry->owner],
					    .start = on_start,
					    .refresh = on_refresh};
	if (rand() % 4 == 0)
		order_tensors_changed(&order);
	order_add(&order, &entry->order);
	check_nothing_idle();
}

static void finish_random(void)
{
	struct entry *entry = &entries[(unsigned)rand() % n_entries];
	/* One that waits is cancelled, one that runs is finished. */
	if (entry->finished || (!entry->started_at && rand() % 4))
		return;
	entry->finished = true;
	entry->started_at = entry->started_at ? entry->started_at : ++clock_now;
	order_finish(&order, &entry->order);
	check_nothing_idle();
}

START_TEST(order_agrees_with_a_simulation)
{
	srand(1);
	for (unsigned round = 0; round < N_ROUNDS; round++) {
		order_init(&order, &geometry);
		n_entries = 0;
		while (n_entries < N_ENTRIES)
			if (n_entries == 0 || rand() % 2)
				add_random();
			else
				finish_random();
		while (!order_is_idle(&order))
			finish_random();
		for (unsigned i = 0; i < n_entries; i++)
			ck_assert(entries[i].started_at && entries[i].finished);
		order_deinit(&order);
	}
	ck_assert_uint_gt(n_refreshed, 0);
}
END_TEST

static bool is_free(struct order_access *access)
{
	const struct order_entry entry = {.accesses = access, .n_accesses = 1};
	return order_is_free(&order, &entry);
}

START_TEST(order_is_free_tells_who_would_wait)
{
	struct order_access access = {place_of(0, 4), KINDS_DATA, true, false};
	struct order_access reading = {place_of(2, 6), KINDS_DATA, false, false},
			    elsewhere = {place_of(8, 9), KINDS_DATA, true, false};
	entries[0] = (struct entry){.finish_at_once = false};
	entries[0].order = (struct order_entry){.accesses = &access, .n_accesses = 1, .start = on_start};
	order_init(&order, &geometry);
	ck_assert(is_free(&reading));
	order_add(&order, &entries[0].order);
	ck_assert(!is_free(&reading));
	ck_assert(is_free(&elsewhere));
	order_finish(&order, &entries[0].order);
	ck_assert(order_is_idle(&order));
}
END_TEST

/* Entries of many accesses each, over all of an NPU, that never meet: the first ones are told apart, and later
 * ones too, but one that would take too long to compare waits for whatever has its offsets, each time it is asked.
 */
START_TEST(what_takes_too_long_to_compare_waits)
{
	enum { MANY = 24, EACH = 64 };
	static struct order_access accesses[MANY][EACH];
	static struct entry many[MANY];
	unsigned n_started = 0;
	order_init(&order, &geometry);
	n_entries = 0;
	for (unsigned i = 0; i < MANY; i++) {
		many[i] = (struct entry){.finish_at_once = false};
		for (unsigned k = 0; k < EACH; k++) {
			int64_t at = (i * 7 + k) % 128;
			accesses[i][k] = (struct order_access){place_of(at, at + 1), KINDS_DATA, false, false};
		}
		/* One byte that nobody else has, written. */
		accesses[i][EACH - 1] = (struct order_access){place_of(128 + i, 129 + i), KINDS_DATA, true, false};
		many[i].order = (struct order_entry){
			.accesses = accesses[i], .n_accesses = EACH, .owner = &many[i], .start = on_start};
		ck_assert_int_eq(order_is_free(&order, &many[i].order), n_started == i);
		order_add(&order, &many[i].order);
		n_started += many[i].order.started;
	}
	ck_assert_uint_ge(n_started, 10);
	ck_assert_uint_lt(n_started, MANY);
	for (unsigned i = 0; i < MANY; i++) {
		ck_assert(many[i].order.started);
		order_finish(&order, &many[i].order);
	}
	order_deinit(&order);
}
END_TEST

Suite *suite_order(void)
{
	Suite *suite = suite_create("service/order");
	TCase *tcase = tcase_create("order");
	tcase_add_test(tcase, order_agrees_with_a_simulation);
	tcase_add_test(tcase, order_is_free_tells_who_would_wait);
	tcase_add_test(tcase, what_takes_too_long_to_compare_waits);
	suite_add_tcase(suite, tcase);
	return suite;
}
