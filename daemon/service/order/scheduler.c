/* Queues are sorted by arrival; an access that starts moves to the front, past accesses that it does not conflict
 * with. Invariants: entry->n_ready counts its accesses with is_ready; a ready access conflicts with no earlier
 * one; an access that is neither ready nor due conflicts with an earlier one. A due access is checked when one
 * that may have blocked it leaves; the first of a queue that waits is checked before the others. */
#include "daemon/service/order/scheduler.h"

#include <assert.h>
#include <utlist.h>

#include "daemon/device/tensors/meetings.h"
#include "daemon/service/tensors/record.h"

/* Both hold for each queue of an entry that leaves, so that a list of a thousand accesses takes about a
 * millisecond. No more than COMPARED_MAX ever run at once. */
enum {
	COMPARED_MAX = 64, /* accesses that one is compared with in a queue, before it counts as not ready */
	CHECKED_MAX = 8,   /* accesses that are due and checked when one goes */
	LONG_TURNS = 10, /* with fewer, a neighbour's stream of short lists would keep the device open for ever */
	/* Entries of one user that are not long, and have started: when an exclusive entry closes the device, it
	 * and all others wait until these have ended. */
	SHORT_MOST = 8,
	SHORT_MORE =
		2, /* held entries that start when one has left: thousands in one turn would take milliseconds */
};

void scheduler_init(struct scheduler *scheduler)
{
	*scheduler = (struct scheduler){.arrivals = 0};
}

void scheduler_deinit(struct scheduler *scheduler)
{
	assert(!scheduler->first);
	(void)scheduler;
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

/* Adds it to its user's entries that are ready and lack the device, in order of arrival: one that waits for its
 * user's exclusive entry must not be before one that the exclusive entry waits for. */
static void hold(struct scheduler *scheduler, struct scheduler_entry *entry)
{
	struct scheduler_user *user = entry->user;
	struct scheduler_entry *before = user->held ? user->held->prev_held : NULL;

	if (entry->is_held || entry->is_exclusive)
		return;
	entry->is_held = true;
	if (!before)
		DL_APPEND2(scheduler->holding, user, prev_holding, next_holding);
	while (before && before->arrival > entry->arrival)
		before = before == user->held ? NULL : before->prev_held;
	DL_APPEND_ELEM2(user->held, before, entry, prev_held, next_held);
}

static void unhold(struct scheduler *scheduler, struct scheduler_entry *entry)
{
	struct scheduler_user *user = entry->user;

	if (!entry->is_held)
		return;
	entry->is_held = false;
	DL_DELETE2(user->held, entry, prev_held, next_held);
	if (!user->held)
		DL_DELETE2(scheduler->holding, user, prev_holding, next_holding);
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
	entry->is_started = entry->is_held = false;
	user->n_accesses += n;
	DL_APPEND(scheduler->first, entry);
	scheduler->n_exclusive += entry->is_exclusive;
	if (entry->is_exclusive)
		DL_APPEND2(user->exclusive, entry, prev_exclusive, next_exclusive);
	for (size_t i = 0; i < n; i++) {
		accesses[i].entry = entry;
		accesses[i].is_ready = false;
		enqueue(&accesses[i]);
		accesses[i].is_ready = is_free(&accesses[i]);
		entry->n_ready += accesses[i].is_ready;
		queue_of(accesses[i].root)->n_waiting -= accesses[i].is_ready;
	}
	start_if_ready(scheduler, entry);
}

static void start_held(struct scheduler *scheduler, struct scheduler_user *user, unsigned most)
{
	while (user->held && most-- && has_device(scheduler, user->held))
		start_if_ready(scheduler, user->held);
}

/* Starts an exclusive entry that is first now, and some of the user's held entries. */
static void pass_on(struct scheduler *scheduler, struct scheduler_user *user)
{
	if (scheduler->first && scheduler->first->is_exclusive)
		start_if_ready(scheduler, scheduler->first);
	start_held(scheduler, user, SHORT_MORE);
}

/* The same of all users, as an exclusive entry has left or lets others start now. Each user has some started then,
 * and as one of these leaves, more start. */
static void pass_on_to_all(struct scheduler *scheduler)
{
	struct scheduler_user *user, *next;

	if (scheduler->first && scheduler->first->is_exclusive)
		start_if_ready(scheduler, scheduler->first);
	DL_FOREACH_SAFE2(scheduler->holding, user, next, next_holding)
	start_held(scheduler, user, SHORT_MOST);
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
	if (entry->is_started)
		count_started(scheduler, entry, -(size_t)1);
	entry->n_accesses = 0;
	entry->user->n_accesses -= n;
	dequeue_all(scheduler, accesses, n);
	if (entry->is_exclusive)
		pass_on_to_all(scheduler);
	else
		pass_on(scheduler, entry->user);
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
