/* Queues are sorted by arrival; an access that starts moves to the front, past accesses that it does not conflict
 * with. Invariants: entry->n_ready counts its accesses with is_ready; a ready access conflicts with no earlier
 * one, and with none that has started; an access that is neither ready nor put off conflicts with such a one, and
 * is checked when one that may have blocked it leaves; the first of a queue that waits is checked before the
 * others. */
#include "daemon/service/order/scheduler.h"

#include <assert.h>
#include <stddef.h>
#include <utlist.h>

#include "daemon/device/tensors/meetings.h"
#include "daemon/service/order/conflicts.h"
#include "daemon/service/order/put_off.h"
#include "daemon/service/tensors/record.h"

enum {
	/* Accesses that are checked in each queue when one leaves it, each with so many before it; the others in
	 * later turns. So the end of a list of a thousand accesses takes about a millisecond. */
	CHECKED_MAX = 8,
	COMPARED_AT_ONCE = 64,
	COMPARED_IN_A_TURN = 4096,
	LONG_TURNS = 10, /* with fewer, a neighbour's stream of short lists would keep the device open for ever */
	/* Entries of one user that are not long, and have started: when an exclusive entry closes the device, it
	 * and all others wait until these have ended. */
	SHORT_MOST = 8,
	STARTED_MAX = 64, /* held entries that start at once, the others in later turns */
};

static void run_work(struct fair_work *work);

void scheduler_init(struct scheduler *scheduler, struct fair_queue *queue, struct fair_user *self)
{
	*scheduler = (struct scheduler){.put_off.queue = queue,
					.self = self,
					.work.run = run_work,
					.checked_max = CHECKED_MAX,
					.compared_at_once = COMPARED_AT_ONCE,
					.compared_in_a_turn = COMPARED_IN_A_TURN};
}

void scheduler_deinit(struct scheduler *scheduler)
{
	assert(!scheduler->first);
	fair_queue_remove(&scheduler->work);
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
	return !scheduler->n_exclusive || entry->user->n_short < SHORT_MOST;
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

static void unlink_access(struct scheduler *scheduler, struct scheduler_queue *queue,
			  struct scheduler_access *access)
{
	put_off_pass(&scheduler->put_off, access);
	if (queue->last_started == access)
		queue->last_started = access->prev;
	*(access->prev ? &access->prev->next : &queue->first) = access->next;
	*(access->next ? &access->next->prev : &queue->last) = access->prev;
}

static void go_in_front(struct scheduler *scheduler, struct scheduler_access *access)
{
	struct scheduler_queue *queue = record_queue(access->tensor);

	/* Where it stays in its place it may still be compared with. */
	if (access->prev != queue->last_started) {
		unlink_access(scheduler, queue, access);
		link_behind(queue, access, queue->last_started);
	}
	queue->last_started = access;
	if (!access->footprint)
		return;
	DL_DELETE2(queue->footprints, access, prev_footprint, next_footprint);
	DL_PREPEND2(queue->footprints, access, prev_footprint, next_footprint);
}

/* Accesses behind one that has begun, or whose range has grown, wait for it if they conflict. */
static void hold_behind(struct scheduler *scheduler, const struct scheduler_access *access)
{
	struct scheduler_queue *queue = record_queue(access->tensor);

	for (struct scheduler_access *at = access->next; at; at = at->next) {
		if (at->entry->is_started || !(at->is_ready || at->is_put_off) || !conflicts_between(access, at))
			continue;
		/* It may have been compared with all that was at this place. */
		if (at->is_put_off) {
			put_off_remove(&scheduler->put_off, at);
			continue;
		}
		at->is_ready = false;
		at->entry->n_ready--;
		unhold(scheduler, at->entry);
		queue->n_waiting++;
	}
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
		if (entry->accesses[i].tensor)
			go_in_front(scheduler, &entry->accesses[i]);
	entry->ready(entry);
}

/* ---- accesses ---- */

static void make_ready(struct scheduler *scheduler, struct scheduler_access *access)
{
	access->is_ready = true;
	access->entry->n_ready++;
	record_queue(access->tensor)->n_waiting--;
	start_if_ready(scheduler, access->entry);
}

static bool is_free(struct scheduler *scheduler, struct scheduler_access *access)
{
	struct scheduler_access *at = access->prev;
	unsigned most = scheduler->compared_at_once;
	enum conflicts_found found = conflicts_find(access, &at, &most);

	if (found == CONFLICTS_UNKNOWN)
		put_off_add(&scheduler->put_off, access);
	return found == CONFLICTS_NONE;
}

static void run_put_off(struct fair_work *work)
{
	struct scheduler_user *user =
		(struct scheduler_user *)((char *)work - offsetof(struct scheduler_user, work));
	struct scheduler *scheduler = user->scheduler;
	unsigned most = scheduler->compared_in_a_turn;
	struct scheduler_access *access;

	for (unsigned n = 0;
	     n < scheduler->checked_max && (access = put_off_next(&scheduler->put_off, user, &most)); n++)
		make_ready(scheduler, access);
	if (user->put_off)
		fair_queue_add(scheduler->put_off.queue, user->loop, &user->work);
}

static void go_on_later(struct scheduler *scheduler)
{
	fair_queue_add(scheduler->put_off.queue, scheduler->self, &scheduler->work);
}

static bool is_to_be_checked(const struct scheduler_access *access, const struct scheduler_access *gone)
{
	return !access->is_ready && !access->is_put_off && (!gone || conflicts_between(gone, access));
}

/* `gone`: an access that leaves this queue. NULL: accesses to a root that this one meets have left. */
static void check_queue(struct scheduler *scheduler, const struct tensor *root,
			const struct scheduler_access *gone)
{
	const struct scheduler_queue *queue = record_queue(root);
	struct scheduler_access *access = queue->last_started ? queue->last_started->next : queue->first, *next;
	unsigned n_checked = 0;

	for (; access && queue->n_waiting; access = next) {
		next = access->next;
		if (is_to_be_checked(access, gone)) {
			if (n_checked++ >= scheduler->checked_max)
				put_off_add(&scheduler->put_off, access);
			else if (is_free(scheduler, access))
				make_ready(scheduler, access);
		}
		/* All later ones wait for it. A long backlog on a tensor is not walked each time one leaves. */
		if (conflicts_holds_up_all(access))
			return;
	}
}

bool scheduler_is_clear(const struct scheduler *scheduler, const struct scheduler_user *user,
			const struct scheduler_access *accesses, size_t n)
{
	if (user->exclusive || closes_device(scheduler))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (record_queue(accesses[i].tensor)->first)
			return false;
		if (!conflicts_may_elsewhere(&accesses[i]))
			continue;
		for (const struct meeting *at = meetings_first(accesses[i].tensor); at; at = at->next)
			if (conflicts_first_met(at))
				return false;
	}
	return true;
}

static struct record *other_record(const struct meeting *meeting)
{
	return tensor_owner_room(meeting->other);
}

/* Adds n to n_met_footprints of the roots that this one meets, also of those that have no owner yet. */
static void count_footprints(const struct tensor *root, uint32_t n)
{
	for (const struct meeting *meeting = meetings_first(root); n && meeting; meeting = meeting->next)
		other_record(meeting)->n_met_footprints += n;
}

static void enqueue(struct scheduler_access *access)
{
	struct scheduler_queue *queue = record_queue(access->tensor);

	link_behind(queue, access, queue->last);
	if (access->footprint)
		DL_APPEND2(queue->footprints, access, prev_footprint, next_footprint);
	record_of(access->tensor)->n_footprints += access->footprint;
	queue->n_needs_tensor += access->needs_tensor;
	queue->n_changes += access->writes || access->frees;
	count_footprints(access->tensor, access->footprint);
	queue->n_waiting++;
}

static void dequeue(struct scheduler *scheduler, struct scheduler_access *access)
{
	struct scheduler_queue *queue = record_queue(access->tensor);

	put_off_remove(&scheduler->put_off, access);
	unlink_access(scheduler, queue, access);
	if (access->footprint)
		DL_DELETE2(queue->footprints, access, prev_footprint, next_footprint);
	record_of(access->tensor)->n_footprints -= access->footprint;
	queue->n_needs_tensor -= access->needs_tensor;
	queue->n_changes -= access->writes || access->frees;
	count_footprints(access->tensor, -(uint32_t)access->footprint);
	queue->n_waiting -= !access->is_ready;
}

/* Checks each queue once: a list may have a thousand accesses to roots that all meet one. */
static void check_those_met(struct scheduler *scheduler, const struct scheduler_access *gone)
{
	if (!conflicts_may_elsewhere(gone))
		return;
	for (const struct meeting *meeting = meetings_first(gone->tensor); meeting; meeting = meeting->next) {
		struct record *record = record_of(meeting->other);

		if (!conflicts_may_across(gone, meeting) || record->is_checked)
			continue;
		record->is_checked = true;
		check_queue(scheduler, meeting->other, NULL);
	}
}

static void forget_checks(const struct scheduler_access *gone)
{
	if (!conflicts_may_elsewhere(gone))
		return;
	for (const struct meeting *meeting = meetings_first(gone->tensor); meeting; meeting = meeting->next)
		if (record_of(meeting->other))
			record_of(meeting->other)->is_checked = false;
}

static void dequeue_all(struct scheduler *scheduler, struct scheduler_access *accesses, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (accesses[i].tensor)
			dequeue(scheduler, &accesses[i]);
	for (size_t i = 0; i < n; i++) {
		if (!accesses[i].tensor)
			continue;
		check_queue(scheduler, accesses[i].tensor, &accesses[i]);
		check_those_met(scheduler, &accesses[i]);
	}
	for (size_t i = 0; i < n; i++)
		if (accesses[i].tensor)
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
	entry->is_started = false;
	entry->held_in = NULL;
	user->n_accesses += n;
	user->work.run = run_put_off;
	user->scheduler = scheduler;
	DL_APPEND(scheduler->first, entry);
	scheduler->n_exclusive += entry->is_exclusive;
	if (entry->is_exclusive)
		DL_APPEND2(user->exclusive, entry, prev_exclusive, next_exclusive);
	for (size_t i = 0; i < n; i++) {
		accesses[i].entry = entry;
		accesses[i].is_put_off = accesses[i].is_compared_now = false;
		accesses[i].is_ready = !accesses[i].tensor;
		if (accesses[i].is_ready) {
			entry->n_ready++;
			continue;
		}
		enqueue(&accesses[i]);
		accesses[i].is_ready = is_free(scheduler, &accesses[i]);
		entry->n_ready += accesses[i].is_ready;
		record_queue(accesses[i].tensor)->n_waiting -= accesses[i].is_ready;
	}
	start_if_ready(scheduler, entry);
}

void scheduler_add_made(struct scheduler *scheduler, struct scheduler_access *access, struct tensor *made)
{
	assert(!access->tensor && access->entry->is_started);
	access->tensor = made;
	enqueue(access);
	record_queue(made)->n_waiting--;
	go_in_front(scheduler, access);
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

static void run_work(struct fair_work *work)
{
	struct scheduler *scheduler = (struct scheduler *)((char *)work - offsetof(struct scheduler, work));

	pass_on_to_all(scheduler);
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

/* The access leaves the front of its queue, where the entries stay that have started. */
static void go_back(struct scheduler *scheduler, struct scheduler_access *access)
{
	struct scheduler_queue *queue = record_queue(access->tensor);

	assert(!access->footprint);
	unlink_access(scheduler, queue, access);
	link_behind(queue, access, last_before(queue, access->entry));
}

bool scheduler_read_too(struct scheduler *scheduler, struct scheduler_entry *entry,
			const struct tensor_range *range)
{
	struct scheduler_access *access = &entry->accesses[0];

	assert(entry->is_started && access->needs_tensor);
	access->range = *range;
	/* When it started, it went past accesses that it may conflict with now. */
	go_back(scheduler, access);
	if (is_free(scheduler, access)) {
		go_in_front(scheduler, access);
		hold_behind(scheduler, access);
		return true;
	}
	record_queue(access->tensor)->n_waiting++;
	access->is_ready = false;
	entry->n_ready--;
	count_started(scheduler, entry, -(size_t)1);
	hold_behind(scheduler, access);
	for (size_t i = 1; i < entry->n_accesses; i++) {
		if (!entry->accesses[i].tensor)
			continue;
		go_back(scheduler, &entry->accesses[i]);
		hold_behind(scheduler, &entry->accesses[i]);
	}
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
	if (!entry->is_exclusive) {
		pass_on(scheduler, entry->user);
		return;
	}
	hold_anew(scheduler, entry->user);
	pass_on_to_all(scheduler);
}

void scheduler_add_root(struct tensor *root)
{
	struct record *record = tensor_owner_room(root);

	record->n_met_footprints = 0;
	for (const struct meeting *meeting = meetings_first(root); meeting; meeting = meeting->next)
		record->n_met_footprints += other_record(meeting)->n_footprints;
}

void scheduler_forget(struct scheduler *scheduler, const struct tensor *root)
{
	struct scheduler_queue *queue = record_queue(root);
	struct scheduler_access *access = queue->first, *next;

	if (!access)
		return;
	count_footprints(root, -(uint32_t)record_of(root)->n_footprints);
	*queue = (struct scheduler_queue){.first = NULL};
	record_of(root)->n_footprints = 0;
	for (; access; access = next) {
		next = access->next;
		access->tensor = NULL;
		put_off_remove(&scheduler->put_off, access);
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
