/* What may start now, and what waits for which before it.
 *
 * No byte is data of two tensors, so two operations conflict only on one root tensor, or across a meeting: two
 * roots of which one has data in the other's footprint, where a kernel writes that footprint. Each root has a
 * queue of the accesses to it, in order of arrival; an access is ready when no earlier one in its queue, or in
 * that of a root that it meets, conflicts with it. An entry starts when all its accesses are ready. An exclusive
 * entry has the device for itself: it starts when everything that arrived before it is over, and nothing runs.
 * What arrives after it waits for it: what is its own user's from the beginning, what is others' only when nothing
 * is before it and nothing of its user's runs. So what a user lets run long keeps nobody else waiting.
 *
 * Everybody waits only for what arrived earlier, or has started and waits for nothing: nobody waits in a circle.
 * Owns no entry and no thread; all calls come from the thread that owns the device. */
#ifndef SERVICE_SCHEDULER_H
#define SERVICE_SCHEDULER_H

#include "daemon/device/operations/op.h"

struct scheduler_entry;

/* Bytes of one root tensor. */
struct scheduler_access {
	struct tensor *root;
	struct tensor_range range; /* of its words */
	bool writes;
	bool footprint; /* a kernel writes it, and with it all of its footprint */
	bool frees;	/* it, or a view of it */
	bool survives;	/* the root may go before it starts: it is looked up again then */

	/* The scheduler's own. */
	struct scheduler_entry *entry;
	struct scheduler_access *next, *prev; /* in the root's queue */
	bool is_ready;
};

/* Whose requests they are; zero at first. */
struct scheduler_user {
	size_t n_started;
	struct scheduler_entry *exclusive; /* that were let go, in order of arrival */
};

/* One unfinished request; embedded in its owner. */
struct scheduler_entry {
	bool is_exclusive; /* set at any time before scheduler_let_go */
	/* Its turn has come: called once, not from scheduler_enter but maybe from any other call below. */
	void (*ready)(struct scheduler_entry *entry);

	/* The scheduler's own. */
	struct scheduler_user *user;
	struct scheduler_access *accesses;
	size_t n_accesses, n_ready;
	uint64_t arrival;
	bool is_held; /* what it will access is not known for good */
	bool is_started;
	struct scheduler_entry *next, *prev;			 /* all, in order of arrival */
	struct scheduler_entry *next_exclusive, *prev_exclusive; /* of its user's */
};

/* The accesses to a root, in its record: those that have started, and behind them the others in order of arrival.
 */
struct scheduler_queue {
	struct scheduler_access *first, *last, *last_started;
	size_t n_waiting; /* that are not ready */
	size_t n_held, n_held_frees;
};

struct scheduler {
	uint64_t arrivals;
	size_t n_started;
	struct scheduler_entry *first; /* in order of arrival */
};

void scheduler_init(struct scheduler *scheduler);
/* Nothing is in it. */
void scheduler_deinit(struct scheduler *scheduler);

/* The arrival of what enters next. */
static inline uint64_t scheduler_next_arrival(const struct scheduler *scheduler)
{
	return scheduler->arrivals + 1;
}
/* Whether what accesses this for `user`, and comes now, has nothing to wait for. Where it is over before anything
 * else comes it need not enter. */
bool scheduler_is_clear(const struct scheduler *scheduler, const struct scheduler_user *user,
			const struct scheduler_access *accesses, size_t n);
/* Takes an entry, held, not exclusive and without accesses: its arrival is now. `user` outlives it. */
void scheduler_enter(struct scheduler *scheduler, struct scheduler_entry *entry, struct scheduler_user *user);
/* What it accesses, instead of what it did so far: the n accesses live until the next claim or scheduler_leave,
 * and are of different roots. Where it is still held, they keep its place for it. It has not started. */
void scheduler_claim(struct scheduler *scheduler, struct scheduler_entry *entry, struct scheduler_access *accesses,
		     size_t n);
/* It may start, with what it claimed last. */
void scheduler_let_go(struct scheduler *scheduler, struct scheduler_entry *entry);
/* Over, or given up. */
void scheduler_leave(struct scheduler *scheduler, struct scheduler_entry *entry);

/* A root goes: what is held keeps no place there any more, and who waited for it to go need not wait. */
void scheduler_forget_root(struct scheduler *scheduler, struct scheduler_queue *queue);

/* Whether something that arrived before the entry is held that may free the root, or a view of it: what the entry
 * finds now it may not find then. */
bool scheduler_may_go(const struct scheduler_queue *queue, const struct scheduler_entry *entry);
/* Whether something that arrived before the entry is held that may use the root: it must find it. */
bool scheduler_may_be_used(const struct scheduler_queue *queue, const struct scheduler_entry *entry);

/* Whether something that arrived after the entry has claimed the root for good, and not started. */
bool scheduler_is_used_later(const struct scheduler_queue *queue, const struct scheduler_entry *entry);

/* True where nothing at all is unfinished. */
static inline bool scheduler_is_idle(const struct scheduler *scheduler)
{
	return !scheduler->first;
}

/* True while an entry has the device for itself. */
static inline bool scheduler_is_exclusive(const struct scheduler *scheduler)
{
	return scheduler->first && scheduler->first->is_exclusive && scheduler->first->is_started;
}

#endif
