/* A list in the order sent. Each waiting entry counts those it waits for; when an entry goes, the ones that
 * counted it count one less, and start at 0. Comparing costs nanoseconds for entries whose offsets do not meet,
 * and is bounded for the others, so the whole is linear in what is in flight, which the limits bound. Invariant: a
 * waiting entry's n_before is the number of conflicting earlier entries and of conflicting later ones that have
 * started; of the latter there are some only where a tensor that it names came after them. */
#include "daemon/service/order.h"

#include <assert.h>

#include "daemon/device/geometry/intersect.h"

void order_init(struct order *order, const struct npumem_geometry *geometry)
{
	*order = (struct order){.geometry = geometry};
}

void order_deinit(struct order *order)
{
	assert(!order->first);
	(void)order;
}

/* Comparing is counted in units of about 5 ns. One pair of entries takes as many as all their accesses and some of
 * those whose offsets meet, and then counts as conflicting; one entry takes as many as a quarter of a millisecond
 * has, and is then compared by its offsets alone. Neither is different the next time: what was counted of a pair
 * is taken back by comparing it again. */
enum { UNITS_PER_STEP = 40, UNITS_OF_PAIR = 8192, UNITS_OF_ENTRY = 50000 };

static bool accesses_meet(const struct npumem_geometry *geometry, const struct order_access *a,
			  const struct order_access *b, int64_t *units)
{
	const struct npumem_place *x = &a->place, *y = &b->place;
	/* What cannot be told in so many, waits. */
	enum { STEPS = 16 };
	int64_t steps = STEPS;
	struct intersect walk;
	struct intersect_range range;
	--*units;
	if (!(a->writes || b->writes) || x->offset >= y->offset + y->bytes_per_npu ||
	    y->offset >= x->offset + x->bytes_per_npu)
		return false;
	intersect_begin(&walk, geometry, x, a->kinds, y, b->kinds);
	bool maybe = a->coarse || b->coarse || intersect_step(&walk, &steps, &range) != INTERSECT_END;
	*units -= UNITS_PER_STEP * (STEPS - steps);
	return maybe || *units < 0;
}

/* `units`: what it takes is taken from these. */
static bool meet(const struct order *order, const struct order_entry *a, const struct order_entry *b,
		 int64_t *units)
{
	int64_t left = UNITS_OF_PAIR;
	bool found = false;
	--*units;
	if (a->end <= b->from || b->end <= a->from || !(a->writes || b->writes))
		return false;
	if (a->coarse || b->coarse)
		return true;
	for (unsigned i = 0; i < a->n_accesses && !found; i++)
		for (unsigned j = 0; j < b->n_accesses && !found; j++)
			found = accesses_meet(order->geometry, &a->accesses[i], &b->accesses[j], &left);
	*units -= UNITS_OF_PAIR - left;
	return found;
}

/* Sets what is known of all accesses together. */
static void measure(struct order_entry *entry)
{
	entry->from = INT64_MAX;
	entry->end = 0;
	entry->writes = entry->coarse = false;
	for (unsigned i = 0; i < entry->n_accesses; i++) {
		const struct order_access *access = &entry->accesses[i];
		int64_t end = access->place.offset + access->place.bytes_per_npu;
		if (access->place.offset < entry->from)
			entry->from = access->place.offset;
		if (end > entry->end)
			entry->end = end;
		entry->writes |= access->writes;
	}
}

static bool touches(const struct order_entry *entry)
{
	return entry->barrier || entry->n_accesses;
}

/* `earlier` was sent first. */
static bool conflict_in(const struct order *order, const struct order_entry *earlier,
			const struct order_entry *later, int64_t *units)
{
	if ((earlier->barrier && touches(later)) || (later->barrier && touches(earlier)))
		return true;
	/* What is under way may be using room that the tables call free. */
	if (earlier->barrier && earlier->started && later->changes)
		return true;
	if (earlier->owner == later->owner &&
	    (earlier->alone || later->alone || (earlier->changes && later->follows)))
		return true;
	return meet(order, earlier, later, units);
}

static bool conflict(const struct order *order, const struct order_entry *earlier, const struct order_entry *later)
{
	int64_t units = 0;
	return conflict_in(order, earlier, later, &units);
}

bool order_is_free(const struct order *order, const struct order_entry *entry)
{
	struct order_entry asked = *entry;
	int64_t units = UNITS_OF_ENTRY;
	measure(&asked);
	for (const struct order_entry *earlier = order->first; earlier; earlier = earlier->next) {
		asked.coarse = units < 0;
		if (conflict_in(order, earlier, &asked, &units))
			return false;
	}
	return true;
}

/* False where it takes more than `units`. */
static bool count_in(const struct order *order, struct order_entry *entry, int64_t units)
{
	entry->n_before = 0;
	for (const struct order_entry *earlier = order->first; earlier != entry && units >= 0;
	     earlier = earlier->next)
		entry->n_before += conflict_in(order, earlier, entry, &units);
	for (const struct order_entry *later = entry->next; later && units >= 0; later = later->next)
		entry->n_before += later->started && conflict_in(order, entry, later, &units);
	return units >= 0;
}

/* Nobody may have counted this entry as it was, or he is counted anew. */
static void count_before(const struct order *order, struct order_entry *entry)
{
	measure(entry);
	if (count_in(order, entry, UNITS_OF_ENTRY))
		return;
	entry->coarse = true;
	count_in(order, entry, INT64_MAX);
}

static void refresh(const struct order *order, struct order_entry *entry)
{
	if (entry->refresh)
		entry->refresh(entry);
	entry->version = order->version;
}

/* What the entry touches may be something else by now; false where it has to wait for that. */
static bool renew(struct order *order, struct order_entry *entry)
{
	if (entry->version == order->version)
		return true;
	for (struct order_entry *later = entry->next; later; later = later->next)
		later->n_before -= !later->started && conflict(order, entry, later);
	refresh(order, entry);
	count_before(order, entry);
	for (struct order_entry *later = entry->next; later; later = later->next)
		later->n_before += !later->started && conflict(order, entry, later);
	return !entry->n_before;
}

static void start(const struct order *order, struct order_entry *entry)
{
	entry->started = true;
	/* Of a barrier more is counted from now on. */
	for (struct order_entry *later = entry->next; later && entry->barrier; later = later->next)
		if (!later->started)
			count_before(order, later);
	entry->start(entry);
}

void order_add(struct order *order, struct order_entry *entry)
{
	entry->started = entry->stale = false;
	entry->version = order->version;
	entry->next = NULL;
	entry->prev = order->last;
	if (order->last)
		order->last->next = entry;
	else
		order->first = entry;
	order->last = entry;
	order->n++;
	count_before(order, entry);
	if (!entry->n_before)
		start(order, entry);
}

/* Tensors lie elsewhere now, so everything that waits is compared again. */
static void compare_again(struct order *order)
{
	for (struct order_entry *entry = order->first; entry; entry = entry->next)
		if (!entry->started)
			refresh(order, entry);
	for (struct order_entry *entry = order->first; entry; entry = entry->next)
		if (!entry->started)
			count_before(order, entry);
}

/* Starts what may start. A start can finish its entry at once and so change the list: then from the front again.
 * Such a finish comes back here and leaves the rest to the loop that is running, so that a long queue of short
 * operations does not become a deep stack. */
static void start_ready(struct order *order)
{
	struct order_entry *entry = order->first;
	if (order->starting)
		return;
	order->starting = true;
	while (entry) {
		if (entry->started || entry->n_before || !renew(order, entry)) {
			entry = entry->next;
			continue;
		}
		start(order, entry);
		entry = order->first;
	}
	order->starting = false;
}

/* `entry` no longer counts for those that wait. Where it changed what may be found, those that touch what it
 * touched, or did not find something, are looked at again: the others are as they were. */
static void count_off(const struct order *order, struct order_entry *entry)
{
	bool later = false;
	for (struct order_entry *other = order->first; other; other = other->next) {
		later |= other == entry;
		if (other == entry || other->started || !(later || entry->started))
			continue;
		bool counted = later ? conflict(order, entry, other) : conflict(order, other, entry);
		other->n_before -= counted;
		other->stale |= entry->started && entry->changes && (counted || other->follows);
	}
}

static void renew_stale(struct order *order)
{
	for (struct order_entry *entry = order->first; entry; entry = entry->next) {
		if (entry->stale && !entry->started)
			renew(order, entry);
		entry->stale = false;
	}
}

void order_finish(struct order *order, struct order_entry *entry)
{
	bool changed = entry->started && entry->changes, moved = entry->started && entry->barrier;
	if (!moved)
		count_off(order, entry);
	if (entry->prev)
		entry->prev->next = entry->next;
	else
		order->first = entry->next;
	if (entry->next)
		entry->next->prev = entry->prev;
	else
		order->last = entry->prev;
	order->n--;
	if (moved)
		compare_again(order);
	else if (changed)
		renew_stale(order);
	start_ready(order);
}

unsigned order_accesses(const struct op *op, struct order_access *accesses)
{
	struct op_access touched[OP_ACCESSES_MAX];
	unsigned n = op_accesses(op, touched);
	for (unsigned i = 0; i < n; i++)
		accesses[i] = (struct order_access){touched[i].tensor->place, touched[i].kinds, touched[i].writes,
						    false};
	return n;
}

void order_access_whole(const struct tensor *tensor, struct order_access *access)
{
	*access = (struct order_access){tensor->place, KINDS_FOOTPRINT, true, false};
}
