/* Queues are sorted by arrival; an access that starts moves to the front, past accesses that it does not conflict
 * with. Invariants: entry->n_ready counts its accesses with is_ready; a ready access conflicts with no earlier
 * one; an access that is neither ready nor due conflicts with an earlier one. A due access is checked when one
 * that may have blocked it leaves; the first of a queue that waits is checked before the others. */
#include "daemon/service/order/scheduler.h"

#include <assert.h>
#include <stddef.h>
#include <utlist.h>

#include "daemon/device/tensors/meetings.h"
#include "daemon/service/tensors/record.h"

/* Both hold for each queue of an entry that leaves, so that a list of a thousand accesses takes about a
 * millisecond. No more than COMPARED_MAX ever run at once. */
enum {
	COMPARED_MAX = 64, /* accesses that one is compared with in a queue, before it counts as not ready */
	CHECKED_MAX = 8,   /* accesses that are due and checked when one goes; the others in later turns */
	LONG_TURNS = 10, /* with fewer, a neighbour's stream of short lists would keep the device open for ever */
	/* Entries of one user that are not long, and have started: when an exclusive entry closes the device, it
	 * and all others wait until these have ended. */
	SHORT_MOST = 8,
	STARTED_MAX = 64, /* held entries that start at once, the others in later turns */
};

static void run_work(struct fair_work *work);

void scheduler_init(struct scheduler *scheduler, struct fair_queue *queue, struct fair_user *self)
{
	*scheduler = (struct scheduler){.queue = queue, .self = self, .work.run = run_work};
}

void scheduler_deinit(struct scheduler *scheduler)
{
	assert(!scheduler->first);
	fair_queue_remove(&scheduler->work);
}

static struct scheduler_queue *queue_of(const struct tensor *root)
{
	return &record_of(root)->queue;
}

/* ---- entries ---- */

/* Whether all other entries wait for the first one: it is exclusive, and runs or will soon. While an entry of its
 * own user or a long one of any user runs they do not wait. */
static bool closes_device(const struct scheduler *scheduler)
{
	const struct scheduler_entry *first = scheduler->first;

	if (!first || !first->is_exclusive)
		return false;
	return first->is_started || (!first->user->n_started && !scheduler->n_long);
}

/* Whether no exclusive entry keeps it from running. */
static bool has_device(const struct scheduler *scheduler, const struct scheduler_entry *entry)
{
	const struct scheduler_entry *exclusive = entry->user->exclusive;

	if (entry->is_exclusive)
		return scheduler->first == entry && !scheduler->n_started;
	if (closes_device(scheduler) || (exclusive && entry->arrival > exclusive->arrival))
		return false;
	return !scheduler->n_exclusive || entry->is_long || entry->user->n_short < SHORT_MOST;
}

/* Adds it to its user's entries that are ready and lack the device. */
static void hold(struct scheduler *scheduler, struct scheduler_entry *entry)
{
	struct scheduler_user *user = entry->user;

	if (entry->held_in || entry->is_exclusive)
		return;
	entry->held_in =
		user->exclusive && entry->arrival > user->exclusive->arrival ? &user->behind : &user->held;
	if (entry->held_in == &user->held && !user->held)
		DL_APPEND2(scheduler->holding, user, prev_holding, next_holding);
	DL_APPEND2(*entry->held_in, entry, prev_held, next_held);
}

static void unhold(struct scheduler *scheduler, struct scheduler_entry *entry)
{
	struct scheduler_user *user = entry->user;

	if (!entry->held_in)
		return;
	DL_DELETE2(*entry->held_in, entry, prev_held, next_held);
	if (entry->held_in == &user->held && !user->held)
		DL_DELETE2(scheduler->holding, user, prev_holding, next_holding);
	entry->held_in = NULL;
}

/* An exclusive entry of the user has left: others wait for the next one only. */
static void hold_anew(struct scheduler *scheduler, struct scheduler_user *user)
{
	struct scheduler_entry *entry, *next;

	DL_FOREACH_SAFE2(user->behind, entry, next, next_held)
	{
		if (user->exclusive && entry->arrival > user->exclusive->arrival)
			continue;
		unhold(scheduler, entry);
		hold(scheduler, entry);
	}
}

static void link_behind(struct scheduler_queue *queue, struct scheduler_access *access,
			struct scheduler_access *before)
{
	access->prev = before;
	access->next = before ? before->next : queue->first;
	*(access->prev ? &access->prev->next : &queue->first) = access;
	*(access->next ? &access->next->prev : &queue->last) = access;
}

static void unlink_access(struct scheduler_queue *queue, struct scheduler_access *access)
{
	if (queue->last_started == access)
		queue->last_started = access->prev;
	*(access->prev ? &access->prev->next : &queue->first) = access->next;
	*(access->next ? &access->next->prev : &queue->last) = access->prev;
}

static void go_in_front(struct scheduler_access *access)
{
	struct scheduler_queue *queue = queue_of(access->root);

	unlink_access(queue, access);
	link_behind(queue, access, queue->last_started);
	queue->last_started = access;
}

/* `n` is 1 or -1. */
static void count_started(struct scheduler *scheduler, struct scheduler_entry *entry, size_t n)
{
	entry->is_started = n == 1;
	scheduler->n_started += n;
	entry->user->n_started += n;
	*(entry->is_long ? &scheduler->n_long : &entry->user->n_short) += n;
}

static void start_if_ready(struct scheduler *scheduler, struct scheduler_entry *entry)
{
	if (entry->is_started || entry->n_ready < entry->n_accesses)
		return;
	if (!has_device(scheduler, entry)) {
		hold(scheduler, entry);
		return;
	}
	unhold(scheduler, entry);
	count_started(scheduler, entry, 1);
	for (size_t i = 0; i < entry->n_accesses; i++)
		if (entry->accesses[i].root)
			go_in_front(&entry->accesses[i]);
	entry->ready(entry);
}

/* ---- accesses ---- */

static bool ranges_meet(const struct tensor_range *a, const struct tensor_range *b)
{
	return a->from.n < b->to.n && b->from.n < a->to.n && a->from.c < b->to.c && b->from.c < a->to.c &&
	       a->from.h < b->to.h && b->from.h < a->to.h && a->from.w < b->to.w && b->from.w < a->to.w;
}

static bool conflict(const struct scheduler_access *a, const struct scheduler_access *b)
{
	if (a->entry == b->entry)
		return false;
	if ((a->needs_root && b->frees) || (a->frees && b->needs_root))
		return true;
	return (a->writes || b->writes) && ranges_meet(&a->range, &b->range);
}

static bool is_whole(const struct scheduler_access *access)
{
	const struct tensor_range whole = tensor_range_whole(access->root);

	return !memcmp(&whole, &access->range, sizeof(whole));
}

/* Whether no access before it in its queue conflicts with it. */
static bool is_free_in_queue(struct scheduler_access *access)
{
	unsigned n = 0;

	/* However many reads of parts wait before it, for whatever else their entries wait. */
	if (!access->writes && !access->frees && !record_of(access->root)->n_changes)
		return true;
	for (const struct scheduler_access *before = access->prev; before; before = before->prev) {
		if (conflict(before, access))
			return false;
		/* An earlier access that conflicts with `access` would also conflict with `before`, which is
		 * ready. An exception is `frees` with `needs_root`, which conflict without a common range. */
		if (before->is_ready && before->entry != access->entry && is_whole(before) && !access->frees &&
		    !access->needs_root)
			return true;
		if (++n == COMPARED_MAX) {
			access->is_due = true;
			return false;
		}
	}
	return true;
}

/* The first access to the other root of a meeting. A root that is being placed has no record yet. */
static struct scheduler_access *first_of(const struct meeting *meeting)
{
	return record_of(meeting->other) ? queue_of(meeting->other)->first : NULL;
}

/* Two roots that meet delay each other only where a kernel writes the footprint of one: a queue without such a
 * kernel is not walked, as a host may have hundreds of guests with long queues. */
static bool may_conflict(const struct scheduler_access *access, const struct meeting *meeting)
{
	const struct record *record = record_of(meeting->other);

	/* A root that is being placed has no record, and nothing accesses it. */
	return record && (access->footprint || record->queue.n_footprints);
}

/* Of two roots that meet, a kernel that writes the footprint of one conflicts with each access to the other. */
static bool is_free_of(struct scheduler_access *access, const struct meeting *meeting)
{
	unsigned n = 0;

	if (!may_conflict(access, meeting))
		return true;
	for (const struct scheduler_access *before = first_of(meeting); before; before = before->next) {
		if (before->entry != access->entry && (before->footprint || access->footprint) &&
		    (before->entry->arrival < access->entry->arrival || before->entry->is_started))
			return false;
		if (++n == COMPARED_MAX) {
			access->is_due = true;
			return false;
		}
	}
	return true;
}

/* Whether it may conflict with an access to a root that its own root meets. Most cannot, as no kernel writes the
 * footprint of a tensor that others were placed over safely: a list with a thousand accesses to roots that each
 * meet hundreds walks none of these. */
static bool may_conflict_elsewhere(const struct scheduler_access *access)
{
	return access->footprint || record_of(access->root)->n_met_footprints;
}

static bool is_free(struct scheduler_access *access)
{
	const struct meeting *meeting;

	access->is_due = false;
	if (!is_free_in_queue(access))
		return false;
	if (!may_conflict_elsewhere(access))
		return true;
	for (meeting = meetings_first(access->root); meeting; meeting = meeting->next)
		if (!is_free_of(access, meeting))
			return false;
	return true;
}

static void check(struct scheduler *scheduler, struct scheduler_access *access)
{
	access->is_put_off = false;
	if (!is_free(access))
		return;
	access->is_ready = true;
	access->entry->n_ready++;
	queue_of(access->root)->n_waiting--;
	start_if_ready(scheduler, access->entry);
}

/* Whether each later access with a range conflicts with it. */
static bool writes_whole(const struct scheduler_access *access)
{
	return access->writes && is_whole(access);
}

static void go_on_later(struct scheduler *scheduler)
{
	fair_queue_add(scheduler->queue, scheduler->self, &scheduler->work);
}

/* It is checked in another turn. */
static void put_off(struct scheduler *scheduler, struct scheduler_access *access)
{
	struct scheduler_entry *entry = access->entry;

	access->is_put_off = true;
	if (entry->is_put_off)
		return;
	entry->is_put_off = true;
	DL_APPEND2(scheduler->put_off, entry, prev_put_off, next_put_off);
	go_on_later(scheduler);
}

/* `gone`: an access that leaves this queue. NULL: accesses to a root that this one meets have left. */
static void check_queue(struct scheduler *scheduler, const struct tensor *root,
			const struct scheduler_access *gone)
{
	const struct scheduler_queue *queue = queue_of(root);
	struct scheduler_access *access = queue->last_started ? queue->last_started->next : queue->first, *next;
	unsigned n_checked = 0;

	for (uint32_t n = queue->n_waiting; n; access = next) {
		next = access->next;
		n -= !access->is_ready;
		access->is_due |= !access->is_ready && (!gone || conflict(gone, access));
		if (access->is_due && n_checked++ < CHECKED_MAX)
			check(scheduler, access);
		else if (access->is_due)
			put_off(scheduler, access);
		/* All later ones wait for it. A long backlog on a tensor is not walked each time one leaves. */
		if (writes_whole(access) && !queue->n_needs_root)
			return;
	}
}

bool scheduler_is_clear(const struct scheduler *scheduler, const struct scheduler_user *user,
			const struct scheduler_access *accesses, size_t n)
{
	if (user->exclusive || closes_device(scheduler))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (queue_of(accesses[i].root)->first)
			return false;
		if (!may_conflict_elsewhere(&accesses[i]))
			continue;
		for (const struct meeting *at = meetings_first(accesses[i].root); at; at = at->next)
			if (first_of(at))
				return false;
	}
	return true;
}

/* Adds n to n_met_footprints of the roots that this one meets. */
static void count_footprints(const struct tensor *root, uint32_t n)
{
	for (const struct meeting *meeting = meetings_first(root); n && meeting; meeting = meeting->next)
		if (record_of(meeting->other))
			record_of(meeting->other)->n_met_footprints += n;
}

static void enqueue(struct scheduler_access *access)
{
	struct scheduler_queue *queue = queue_of(access->root);

	link_behind(queue, access, queue->last);
	queue->n_footprints += access->footprint;
	queue->n_needs_root += access->needs_root;
	record_of(access->root)->n_changes += access->writes || access->frees;
	count_footprints(access->root, access->footprint);
	queue->n_waiting++;
}

static void dequeue(struct scheduler_access *access)
{
	struct scheduler_queue *queue = queue_of(access->root);

	unlink_access(queue, access);
	queue->n_footprints -= access->footprint;
	queue->n_needs_root -= access->needs_root;
	record_of(access->root)->n_changes -= access->writes || access->frees;
	count_footprints(access->root, -(uint32_t)access->footprint);
	queue->n_waiting -= !access->is_ready;
}

/* Checks each queue once: a list may have a thousand accesses to roots that all meet one. */
static void check_those_met(struct scheduler *scheduler, const struct scheduler_access *gone)
{
	if (!may_conflict_elsewhere(gone))
		return;
	for (const struct meeting *meeting = meetings_first(gone->root); meeting; meeting = meeting->next) {
		struct record *record = record_of(meeting->other);

		if (!may_conflict(gone, meeting) || record->is_checked)
			continue;
		record->is_checked = true;
		check_queue(scheduler, meeting->other, NULL);
	}
}

static void forget_checks(const struct scheduler_access *gone)
{
	if (!may_conflict_elsewhere(gone))
		return;
	for (const struct meeting *meeting = meetings_first(gone->root); meeting; meeting = meeting->next)
		if (record_of(meeting->other))
			record_of(meeting->other)->is_checked = false;
}

static void dequeue_all(struct scheduler *scheduler, struct scheduler_access *accesses, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (accesses[i].root)
			dequeue(&accesses[i]);
	for (size_t i = 0; i < n; i++) {
		if (!accesses[i].root)
			continue;
		check_queue(scheduler, accesses[i].root, &accesses[i]);
		check_those_met(scheduler, &accesses[i]);
	}
	for (size_t i = 0; i < n; i++)
		if (accesses[i].root)
			forget_checks(&accesses[i]);
}

void scheduler_enter(struct scheduler *scheduler, struct scheduler_entry *entry, struct scheduler_user *user,
		     struct scheduler_access *accesses, size_t n)
{
	entry->arrival = ++scheduler->arrivals;
	entry->user = user;
	entry->accesses = accesses;
	entry->n_accesses = n;
	entry->n_ready = 0;
	entry->n_turns = 0;
	entry->is_started = entry->is_put_off = false;
	entry->held_in = NULL;
	user->n_accesses += n;
	DL_APPEND(scheduler->first, entry);
	scheduler->n_exclusive += entry->is_exclusive;
	if (entry->is_exclusive)
		DL_APPEND2(user->exclusive, entry, prev_exclusive, next_exclusive);
	for (size_t i = 0; i < n; i++) {
		accesses[i].entry = entry;
		accesses[i].is_ready = accesses[i].is_put_off = false;
		enqueue(&accesses[i]);
		accesses[i].is_ready = is_free(&accesses[i]);
		entry->n_ready += accesses[i].is_ready;
		queue_of(accesses[i].root)->n_waiting -= accesses[i].is_ready;
	}
	start_if_ready(scheduler, entry);
}

static void start_held(struct scheduler *scheduler, struct scheduler_user *user, unsigned *most)
{
	while (user->held && has_device(scheduler, user->held)) {
		if (!*most) {
			go_on_later(scheduler);
			return;
		}
		--*most;
		start_if_ready(scheduler, user->held);
	}
}

static void start_exclusive(struct scheduler *scheduler)
{
	if (scheduler->first && scheduler->first->is_exclusive)
		start_if_ready(scheduler, scheduler->first);
}

/* Starts an exclusive entry that is first now, and the user's held entries. */
static void pass_on(struct scheduler *scheduler, struct scheduler_user *user)
{
	unsigned most = STARTED_MAX;

	start_exclusive(scheduler);
	start_held(scheduler, user, &most);
}

/* The same of all users, a few of each in turn, as an exclusive entry has left or lets others start now. */
static void pass_on_to_all(struct scheduler *scheduler)
{
	struct scheduler_user *user, *next;
	unsigned n_users = STARTED_MAX / SHORT_MOST;

	start_exclusive(scheduler);
	for (user = scheduler->holding; user && n_users; user = next) {
		unsigned few = SHORT_MOST;

		next = user->next_holding;
		start_held(scheduler, user, &few);
		if (few)
			continue;
		n_users--;
		if (user->held) {
			DL_DELETE2(scheduler->holding, user, prev_holding, next_holding);
			DL_APPEND2(scheduler->holding, user, prev_holding, next_holding);
		}
	}
	if (user)
		go_on_later(scheduler);
}

static struct scheduler_access *first_put_off(const struct scheduler_entry *entry)
{
	for (size_t i = 0; i < entry->n_accesses; i++)
		if (entry->accesses[i].is_put_off)
			return &entry->accesses[i];
	return NULL;
}

static void check_put_off(struct scheduler *scheduler)
{
	struct scheduler_entry *entry;
	struct scheduler_access *access;

	for (unsigned n = 0; n < CHECKED_MAX && (entry = scheduler->put_off); n++) {
		access = first_put_off(entry);
		if (!access) {
			DL_DELETE2(scheduler->put_off, entry, prev_put_off, next_put_off);
			entry->is_put_off = false;
			continue;
		}
		access->is_put_off = false;
		if (!access->is_ready)
			check(scheduler, access);
	}
}

static void run_work(struct fair_work *work)
{
	struct scheduler *scheduler = (struct scheduler *)((char *)work - offsetof(struct scheduler, work));

	check_put_off(scheduler);
	pass_on_to_all(scheduler);
	if (scheduler->put_off)
		go_on_later(scheduler);
}

void scheduler_lasts(struct scheduler *scheduler, struct scheduler_entry *entry)
{
	bool was_closed = closes_device(scheduler);

	if (!entry->is_started || entry->is_long || entry->is_exclusive)
		return;
	entry->is_long = true;
	scheduler->n_long++;
	entry->user->n_short--;
	if (was_closed)
		pass_on_to_all(scheduler);
	else
		pass_on(scheduler, entry->user);
}

void scheduler_pauses(struct scheduler *scheduler, struct scheduler_entry *entry)
{
	if (++entry->n_turns == LONG_TURNS)
		scheduler_lasts(scheduler, entry);
}

/* The access behind which `entry`, not started, belongs: the last that has started or arrived earlier. */
static struct scheduler_access *last_before(const struct scheduler_queue *queue,
					    const struct scheduler_entry *entry)
{
	struct scheduler_access *before = queue->last;

	while (before != queue->last_started && before->entry->arrival > entry->arrival)
		before = before->prev;
	return before;
}

/* Ready accesses behind one whose range has grown wait for it if they conflict. */
static void hold_behind(struct scheduler *scheduler, struct scheduler_queue *queue,
			const struct scheduler_access *access)
{
	for (struct scheduler_access *at = access->next; at; at = at->next) {
		if (!at->is_ready || at->entry->is_started || !conflict(access, at))
			continue;
		at->is_ready = false;
		at->entry->n_ready--;
		unhold(scheduler, at->entry);
		queue->n_waiting++;
	}
}

bool scheduler_read_too(struct scheduler *scheduler, struct scheduler_entry *entry,
			const struct tensor_range *range)
{
	struct scheduler_access *access = &entry->accesses[0];
	struct scheduler_queue *queue = queue_of(access->root);

	assert(entry->is_started && access->needs_root);
	access->range = *range;
	/* When it started, it went past accesses that it may conflict with now. */
	unlink_access(queue, access);
	link_behind(queue, access, last_before(queue, entry));
	hold_behind(scheduler, queue, access);
	if (is_free(access)) {
		go_in_front(access);
		return true;
	}
	queue->n_waiting++;
	access->is_ready = false;
	entry->n_ready--;
	count_started(scheduler, entry, -(size_t)1);
	/* It may wait for an entry behind an exclusive one, which waited for this one. */
	pass_on(scheduler, entry->user);
	return false;
}

void scheduler_leave(struct scheduler *scheduler, struct scheduler_entry *entry)
{
	struct scheduler_access *accesses = entry->accesses;
	size_t n = entry->n_accesses;

	DL_DELETE(scheduler->first, entry);
	scheduler->n_exclusive -= entry->is_exclusive;
	if (entry->is_exclusive)
		DL_DELETE2(entry->user->exclusive, entry, prev_exclusive, next_exclusive);
	unhold(scheduler, entry);
	if (entry->is_put_off)
		DL_DELETE2(scheduler->put_off, entry, prev_put_off, next_put_off);
	if (entry->is_started)
		count_started(scheduler, entry, -(size_t)1);
	entry->n_accesses = 0;
	entry->user->n_accesses -= n;
	dequeue_all(scheduler, accesses, n);
	if (!entry->is_exclusive) {
		pass_on(scheduler, entry->user);
		return;
	}
	hold_anew(scheduler, entry->user);
	pass_on_to_all(scheduler);
}

void scheduler_add_root(const struct tensor *root)
{
	for (const struct meeting *meeting = meetings_first(root); meeting; meeting = meeting->next)
		if (record_of(meeting->other))
			record_of(root)->n_met_footprints += queue_of(meeting->other)->n_footprints;
}

void scheduler_forget_root(struct scheduler *scheduler, const struct tensor *root)
{
	struct scheduler_queue *queue = queue_of(root);
	struct scheduler_access *access = queue->first, *next;

	if (!access)
		return;
	count_footprints(root, -(uint32_t)queue->n_footprints);
	*queue = (struct scheduler_queue){.first = NULL};
	record_of(root)->n_changes = 0;
	for (; access; access = next) {
		next = access->next;
		access->root = NULL;
		access->is_put_off = false;
		if (access->is_ready)
			continue;
		access->is_ready = true;
		access->entry->n_ready++;
		start_if_ready(scheduler, access->entry);
	}
	for (const struct meeting *meeting = meetings_first(root); meeting; meeting = meeting->next)
		if (record_of(meeting->other))
			check_queue(scheduler, meeting->other, NULL);
}
