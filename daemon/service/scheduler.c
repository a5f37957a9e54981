/* Queues sorted by arrival; what starts goes in front, past what it does not conflict with, so that those that
 * have not are in order whenever one is put in late. Invariant: entry->n_ready counts its accesses with is_ready;
 * an access that is ready conflicts with no earlier one. That one which is not ready does conflict may be wrong
 * for a while, where a queue is long: it is looked at again whenever something before it goes, and the first of a
 * queue is always looked at to its end. */
#include "daemon/service/scheduler.h"

#include <assert.h>
#include <utlist.h>

#include "daemon/device/tensors/meetings.h"
#include "daemon/service/record.h"

enum {
	LOOKS_BACK = 256, /* accesses that one is compared with before it counts as not ready */
	LOOKS_ON = 64,	  /* accesses that are not ready and looked at when one goes */
	LOOKS_OLD = 8,	  /* accesses of one entry that the one it had of a root is looked for among */
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

/* Whether everybody else waits for what is first: by then that is short, as nothing of its own user's runs. */
static bool closes_device(const struct scheduler_entry *first)
{
	return first && first->is_exclusive && !first->is_held && (first->is_started || !first->user->n_started);
}

/* Whether it has the device with the others, or for itself. */
static bool has_device(const struct scheduler *scheduler, const struct scheduler_entry *entry)
{
	const struct scheduler_entry *exclusive = entry->user->exclusive;

	if (entry->is_exclusive)
		return scheduler->first == entry && !scheduler->n_started;
	return !closes_device(scheduler->first) && (!exclusive || entry->arrival < exclusive->arrival);
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

static void start_if_ready(struct scheduler *scheduler, struct scheduler_entry *entry)
{
	if (entry->is_held || entry->is_started || entry->n_ready < entry->n_accesses ||
	    !has_device(scheduler, entry))
		return;
	entry->is_started = true;
	scheduler->n_started++;
	entry->user->n_started++;
	for (size_t i = 0; i < entry->n_accesses; i++)
		if (entry->accesses[i].root)
			go_in_front(&entry->accesses[i]);
	entry->ready(entry);
}

void scheduler_enter(struct scheduler *scheduler, struct scheduler_entry *entry, struct scheduler_user *user)
{
	entry->arrival = ++scheduler->arrivals;
	entry->user = user;
	entry->accesses = NULL;
	entry->n_accesses = entry->n_ready = 0;
	entry->is_held = true;
	entry->is_started = false;
	DL_APPEND(scheduler->first, entry);
}

static int by_arrival(const struct scheduler_entry *a, const struct scheduler_entry *b)
{
	return a->arrival < b->arrival ? -1 : 1;
}

void scheduler_let_go(struct scheduler *scheduler, struct scheduler_entry *entry)
{
	entry->is_held = false;
	for (size_t i = 0; i < entry->n_accesses; i++) {
		struct scheduler_access *access = &entry->accesses[i];

		if (access->root) {
			queue_of(access->root)->n_held--;
			queue_of(access->root)->n_held_frees -= access->frees;
		}
	}
	/* One may have been held for long. */
	if (entry->is_exclusive)
		DL_INSERT_INORDER2(entry->user->exclusive, entry, by_arrival, prev_exclusive, next_exclusive);
	start_if_ready(scheduler, entry);
}

/* ---- accesses ---- */

static bool ranges_meet(const struct tensor_range *a, const struct tensor_range *b)
{
	return a->from.n < b->to.n && b->from.n < a->to.n && a->from.c < b->to.c && b->from.c < a->to.c &&
	       a->from.h < b->to.h && b->from.h < a->to.h && a->from.w < b->to.w && b->from.w < a->to.w;
}

static bool conflict(const struct scheduler_access *a, const struct scheduler_access *b)
{
	return a->entry != b->entry && (a->writes || b->writes) && ranges_meet(&a->range, &b->range);
}

static bool is_whole(const struct scheduler_access *access)
{
	const struct tensor_range whole = tensor_range_whole(&access->root->place);

	return !memcmp(&whole, &access->range, sizeof(whole));
}

/* Whether what is before it in its queue lets it go. */
static bool is_free_in_queue(const struct scheduler_access *access)
{
	unsigned looks = 0;

	for (const struct scheduler_access *before = access->prev; before; before = before->prev) {
		if (conflict(before, access))
			return false;
		/* Whatever conflicts with this one conflicts with that one, too. */
		if (before->entry != access->entry && is_whole(before))
			return before->is_ready;
		if (++looks == LOOKS_BACK)
			return false;
	}
	return true;
}

/* The first access to a root that this one's meets. One that is being placed is nobody's yet. */
static struct scheduler_access *first_of(const struct meeting *meeting)
{
	return record_of(meeting->other) ? queue_of(meeting->other)->first : NULL;
}

/* Of two roots that meet, a kernel that writes the one's footprint and whatever uses the other's data. */
static bool is_free_of(const struct scheduler_access *access, const struct meeting *meeting)
{
	for (const struct scheduler_access *before = first_of(meeting); before; before = before->next)
		if (before->entry != access->entry && (before->footprint || access->footprint) &&
		    (before->entry->arrival < access->entry->arrival || before->entry->is_started))
			return false;
	return true;
}

static bool is_free(const struct scheduler_access *access)
{
	const struct meeting *meeting;

	if (!is_free_in_queue(access))
		return false;
	for (meeting = meetings_first(access->root); meeting; meeting = meeting->next)
		if (!is_free_of(access, meeting))
			return false;
	return true;
}

static void look(struct scheduler *scheduler, struct scheduler_access *access)
{
	if (access->is_ready || !is_free(access))
		return;
	access->is_ready = true;
	access->entry->n_ready++;
	queue_of(access->root)->n_waiting--;
	start_if_ready(scheduler, access->entry);
}

/* Some of a queue's accesses may have become ready. Behind a whole one that is not, none can be. */
static void look_at_queue(struct scheduler *scheduler, const struct tensor *root)
{
	const struct scheduler_queue *queue = queue_of(root);
	struct scheduler_access *access = queue->n_waiting ? queue->first : NULL, *next;
	unsigned looks = 0;

	for (; access && looks < LOOKS_ON; access = next) {
		next = access->next;
		if (access->is_ready) {
			if (access->writes && is_whole(access))
				return;
			continue;
		}
		looks++;
		look(scheduler, access);
		if (!access->is_ready && is_whole(access))
			return;
	}
}

bool scheduler_is_clear(const struct scheduler *scheduler, const struct scheduler_user *user,
			const struct scheduler_access *accesses, size_t n)
{
	if (user->exclusive || closes_device(scheduler->first))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (queue_of(accesses[i].root)->first)
			return false;
		for (const struct meeting *at = meetings_first(accesses[i].root); at; at = at->next)
			if (first_of(at))
				return false;
	}
	return true;
}

static void enqueue(struct scheduler_access *access, struct scheduler_access *old)
{
	struct scheduler_queue *queue = queue_of(access->root);
	struct scheduler_access *before = old ? old : queue->last;

	while (before != queue->last_started && before->entry->arrival > access->entry->arrival)
		before = before->prev;
	link_behind(queue, access, before);
	queue->n_waiting++;
	if (access->entry->is_held) {
		queue->n_held++;
		queue->n_held_frees += access->frees;
	}
}

static void dequeue(struct scheduler *scheduler, struct scheduler_access *access)
{
	struct scheduler_queue *queue = access->root ? queue_of(access->root) : NULL;

	if (!queue)
		return;
	unlink_access(queue, access);
	queue->n_waiting -= !access->is_ready;
	if (access->entry->is_held) {
		queue->n_held--;
		queue->n_held_frees -= access->frees;
	}
	look_at_queue(scheduler, access->root);
	for (const struct meeting *meeting = meetings_first(access->root); meeting; meeting = meeting->next)
		if (record_of(meeting->other))
			look_at_queue(scheduler, meeting->other);
}

static void hold_back(struct scheduler_access *access)
{
	if (!access->is_ready || access->entry->is_started)
		return;
	access->is_ready = false;
	access->entry->n_ready--;
	queue_of(access->root)->n_waiting++;
}

/* What arrived later and has not started waits for what is put in front of it. */
static void hold_back_later(const struct scheduler_access *access)
{
	const struct meeting *meeting;

	for (struct scheduler_access *later = access->next; later; later = later->next)
		if (conflict(access, later))
			hold_back(later);
	for (meeting = meetings_first(access->root); meeting; meeting = meeting->next)
		for (struct scheduler_access *later = first_of(meeting); later; later = later->next)
			if ((later->footprint || access->footprint) &&
			    later->entry->arrival > access->entry->arrival)
				hold_back(later);
}

/* What the entry had of the same root; of many, the first few. */
static struct scheduler_access *find_old(struct scheduler_access *old, size_t n, const struct tensor *root)
{
	for (size_t i = 0; i < n && i < LOOKS_OLD; i++)
		if (old[i].root == root)
			return &old[i];
	return NULL;
}

/* Whether the old one holds back whatever the other does. */
static bool includes(const struct scheduler_access *old, const struct scheduler_access *access)
{
	const struct npumem_dims *from = &old->range.from, *to = &old->range.to;
	const struct tensor_range *range = &access->range;

	return old->writes && (old->footprint || !access->footprint) && from->n <= range->from.n &&
	       from->c <= range->from.c && from->h <= range->from.h && from->w <= range->from.w &&
	       to->n >= range->to.n && to->c >= range->to.c && to->h >= range->to.h && to->w >= range->to.w;
}

void scheduler_claim(struct scheduler *scheduler, struct scheduler_entry *entry, struct scheduler_access *accesses,
		     size_t n)
{
	struct scheduler_access *old = entry->accesses, *same;
	size_t n_old = entry->n_accesses;

	assert(!entry->is_started);
	entry->accesses = accesses;
	entry->n_accesses = n;
	entry->n_ready = 0;
	for (size_t i = 0; i < n; i++) {
		accesses[i].entry = entry;
		accesses[i].is_ready = false;
		same = find_old(old, n_old, accesses[i].root);
		enqueue(&accesses[i], same);
		if (!same || !includes(same, &accesses[i]))
			hold_back_later(&accesses[i]);
	}
	/* Only then, so that nobody slips in between. */
	for (size_t i = 0; i < n_old; i++)
		dequeue(scheduler, &old[i]);
	for (size_t i = 0; i < n; i++)
		look(scheduler, &accesses[i]);
}

/* An exclusive one may have the device, or those behind one that had it. */
static void pass_device_on(struct scheduler *scheduler, bool was_exclusive)
{
	struct scheduler_entry *entry = scheduler->first;

	if (entry && entry->is_exclusive)
		start_if_ready(scheduler, entry);
	for (; was_exclusive && entry && !closes_device(scheduler->first); entry = entry->next)
		start_if_ready(scheduler, entry);
}

void scheduler_leave(struct scheduler *scheduler, struct scheduler_entry *entry)
{
	struct scheduler_access *accesses = entry->accesses;
	size_t n = entry->n_accesses;
	bool was_exclusive = entry->is_exclusive && !entry->is_held;

	DL_DELETE(scheduler->first, entry);
	if (was_exclusive)
		DL_DELETE2(entry->user->exclusive, entry, prev_exclusive, next_exclusive);
	scheduler->n_started -= entry->is_started;
	entry->user->n_started -= entry->is_started;
	entry->n_accesses = 0;
	for (size_t i = 0; i < n; i++)
		dequeue(scheduler, &accesses[i]);
	pass_device_on(scheduler, was_exclusive);
}

void scheduler_forget_root(struct scheduler *scheduler, struct scheduler_queue *queue)
{
	struct scheduler_access *access = queue->first, *next;

	*queue = (struct scheduler_queue){.first = NULL};
	for (; access; access = next) {
		next = access->next;
		access->root = NULL;
		if (access->is_ready)
			continue;
		access->is_ready = true;
		access->entry->n_ready++;
		start_if_ready(scheduler, access->entry);
	}
}

/* The first that has not started. */
static const struct scheduler_access *first_waiting(const struct scheduler_queue *queue)
{
	return queue->last_started ? queue->last_started->next : queue->first;
}

bool scheduler_may_go(const struct scheduler_queue *queue, const struct scheduler_entry *entry)
{
	const struct scheduler_access *access = queue->n_held_frees ? first_waiting(queue) : NULL;

	for (; access && access->entry->arrival < entry->arrival; access = access->next)
		if (access->frees && access->entry->is_held)
			return true;
	return false;
}

bool scheduler_may_be_used(const struct scheduler_queue *queue, const struct scheduler_entry *entry)
{
	const struct scheduler_access *access = queue->n_held ? first_waiting(queue) : NULL;

	for (; access && access->entry->arrival < entry->arrival; access = access->next)
		if (access->entry->is_held)
			return true;
	return false;
}

bool scheduler_is_used_later(const struct scheduler_queue *queue, const struct scheduler_entry *entry)
{
	const struct scheduler_access *access = queue->last;

	for (; access != queue->last_started && access->entry->arrival > entry->arrival; access = access->prev)
		if (!access->entry->is_held && !access->survives)
			return true;
	return false;
}
