/* Which entries may start now, and which earlier entries the others wait for.
 *
 * No byte is data of two tensors, so two operations conflict only on one root tensor, or across a meeting: two
 * roots of which one has data in the other's footprint, where a kernel writes that footprint. Each root has a
 * queue of the accesses to it, in order of arrival; an access is ready when no earlier one in its queue, or in
 * that of a root that it meets, conflicts with it. A view has a queue, too, of what uses the view and what changes
 * or frees it. An entry starts when all its accesses are ready. An exclusive
 * entry has the device for itself: it starts when everything that arrived before it is over, and nothing runs.
 * Entries that arrive after it wait for it: those of its own user from the beginning, those of other users only
 * when nothing is before it and neither anything of its user nor anything long runs. So nobody waits for long
 * operations of others. While there is an exclusive entry, few short entries of each user are started at a time,
 * so that these have soon ended.
 *
 * An entry arrives with all its accesses at once, behind all others. So an entry waits only for earlier ones, and
 * waits form no cycle. Owns no entry and no thread; all calls come from the thread that owns the device. */
#ifndef SERVICE_SCHEDULER_H
#define SERVICE_SCHEDULER_H

#include "daemon/service/order/entries.h"
#include "daemon/service/order/fair_queue.h"
#include "daemon/service/order/put_off.h"

struct scheduler {
	uint64_t arrivals;
	size_t n_started, n_long; /* n_long: started entries with is_long */
	size_t n_exclusive;
	struct scheduler_user *holding; /* users with held entries */
	struct put_off put_off;
	struct fair_user *self; /* of put_off.queue: for what is done in later turns for all users */
	struct fair_work work;
	struct scheduler_entry *first; /* in order of arrival */
	/* How much is done at once (scheduler.c). scheduler_init sets them; a test may lower them. */
	unsigned checked_max, compared_at_once, compared_in_a_turn;
};

/* Some of its work is put off to a later turn of `queue`, as `self`'s or that of the user that waits for it. */
void scheduler_init(struct scheduler *scheduler, struct fair_queue *queue, struct fair_user *self);
/* It must be empty. */
void scheduler_deinit(struct scheduler *scheduler);

/* Whether a request of `user` with these accesses has nothing to wait for now. If it also ends before anything
 * else arrives, it need not enter. */
bool scheduler_is_clear(const struct scheduler *scheduler, const struct scheduler_user *user,
			const struct scheduler_access *accesses, size_t n);
/* Adds an entry; it arrives now. The n accesses live until scheduler_leave and are to different tensors. `user`
 * outlives it, and has `loop`. */
void scheduler_enter(struct scheduler *scheduler, struct scheduler_entry *entry, struct scheduler_user *user,
		     struct scheduler_access *accesses, size_t n);
/* The tensor that a started entry has made, and goes on using. `access`: one of its own, without a tensor so far.
 */
void scheduler_add_made(struct scheduler *scheduler, struct scheduler_access *access, struct tensor *made);
/* A started entry, whose first access has `needs_tensor`, reads `range` as well. True: it goes on. False: an entry
 * that is earlier, or has started, conflicts; this one stops, and starts again when there is no conflict. */
bool scheduler_read_too(struct scheduler *scheduler, struct scheduler_entry *entry,
			const struct tensor_range *range);
/* A started entry goes on for longer than is_long says: other users do not wait for an exclusive entry that waits
 * for this one. */
void scheduler_lasts(struct scheduler *scheduler, struct scheduler_entry *entry);
/* A started entry goes on in another turn, of about a tenth of a millisecond. After ten of them it lasts. */
void scheduler_pauses(struct scheduler *scheduler, struct scheduler_entry *entry);
/* Removes an entry that has ended or was given up. */
void scheduler_leave(struct scheduler *scheduler, struct scheduler_entry *entry);

/* A root that has its place, and may not have an owner yet: it may meet others whose queues are not empty. */
void scheduler_add_root(struct tensor *root);
/* A root or view is freed: entries do not wait for accesses to it any more. */
void scheduler_forget(struct scheduler *scheduler, const struct tensor *tensor);

/* True while an entry has the device for itself. */
static inline bool scheduler_is_exclusive(const struct scheduler *scheduler)
{
	return scheduler->first && scheduler->first->is_exclusive && scheduler->first->is_started;
}

#endif
