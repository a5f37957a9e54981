/* What the scheduler orders: entries, which are requests, and their accesses to tensors. */
#ifndef SERVICE_ENTRIES_H
#define SERVICE_ENTRIES_H

#include "daemon/device/operations/op.h"
#include "daemon/service/order/fair_queue.h"

struct rpc_peer;
struct scheduler;
struct scheduler_entry;

/* To bytes of a root, or to a view itself: what is known of it, without a range. */
struct scheduler_access {
	struct tensor *tensor;	   /* NULL: it is gone, or not yet made; nothing waits for the access */
	struct tensor_range range; /* of its words */
	bool writes;
	bool footprint;	   /* a kernel writes the root, and with it its whole footprint */
	bool frees;	   /* the root; or the view, or changes it */
	bool needs_tensor; /* it must exist, even if the range is empty */

	/* The scheduler's own. */
	struct scheduler_entry *entry;
	struct scheduler_access *next, *prev; /* in the tensor's queue */
	struct scheduler_access *next_footprint, *prev_footprint;
	struct scheduler_access *next_put_off, *prev_put_off; /* of the user's put_off */
	bool is_ready;
	bool is_put_off;      /* not ready, and to be checked in another turn */
	bool is_compared_now; /* may be some user's compared_at */
};

/* A user's part of the scheduler; zero at first. */
struct scheduler_user {
	size_t n_started, n_accesses;	   /* of its entries; and what the gate counts beside them */
	size_t n_short;			   /* of n_started, those that are not long */
	struct scheduler_entry *exclusive; /* in order of arrival */
	/* The gate's lists of peers whose requests wait: for fewer accesses, and for a share of a round on the
	 * disk. Two lists, so that a connection that changes tables holds up no other one of its user. */
	struct rpc_peer *first_full, *first_unshared;
	/* Since the last round on the disk: one of its allocations that waited for room was served, and the next
	 * one waits for a share of a round only. Until it has that, it holds up no other user. */
	bool was_served, is_short;
	struct scheduler_entry *held;	/* ready, not started: they lack the device, or start in another turn */
	struct scheduler_entry *behind; /* the same, behind the user's exclusive entry */
	struct scheduler_user *next_holding, *prev_holding;

	/* Accesses of its entries that are put off; it pays for their turns. */
	struct scheduler *scheduler;
	struct fair_user *loop; /* the user's part of the scheduler's queue; its owner's to set */
	struct fair_work work;
	struct scheduler_access *put_off;
	/* The first of these, and the next to compare it with. NULL: it has not been begun. */
	struct scheduler_access *compared, *compared_at;
	struct scheduler_user *next_comparing, *prev_comparing;
};

/* One unfinished request; embedded in its owner. */
struct scheduler_entry {
	bool is_exclusive;
	bool is_long; /* it may run for more than a millisecond */
	/* Called when it starts, maybe from any call below; again after scheduler_read_too has returned false. */
	void (*ready)(struct scheduler_entry *entry);

	/* The scheduler's own. */
	struct scheduler_user *user;
	struct scheduler_access *accesses;
	size_t n_accesses, n_ready;
	unsigned n_turns; /* after which it has paused */
	uint64_t arrival;
	bool is_started;
	struct scheduler_entry **held_in;			 /* its user's `held` or `behind`; NULL: neither */
	struct scheduler_entry *next, *prev;			 /* all, in order of arrival */
	struct scheduler_entry *next_exclusive, *prev_exclusive; /* of its user's */
	struct scheduler_entry *next_held, *prev_held;		 /* in held_in */
};

#endif
