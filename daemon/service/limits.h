/* How much a uid may have, and how much each has now. A charge is counted where what it pays for begins, and given
 * back where that ends; a limit is asked before. */
#ifndef SERVICE_LIMITS_H
#define SERVICE_LIMITS_H

#include <npumem/types.h>

#include "daemon/device/memory/heap.h"
#include "daemon/device/operations/packs.h"
#include "daemon/service/observed/metrics.h"
#include "daemon/service/scheduler.h"

enum limits_key {
	LIMITS_SESSIONS,
	LIMITS_TENSORS,
	LIMITS_DEVICE_BYTES,  /* of footprints, on all NPUs */
	LIMITS_REQUESTS,      /* that wait or run */
	LIMITS_REQUEST_BYTES, /* of messages and replies, from the first byte received to the last one sent */
	LIMITS_WAITING,	      /* allocations in line for room */
	LIMITS_FOLLOWERS,     /* sessions that follow events */
	LIMITS_SEGMENT_BYTES, /* of shared system memory */
	LIMITS_DESCRIPTORS,   /* that came and wait for the rest of their frame */
	LIMITS_SCRATCH_BYTES, /* of host memory that operations run in */
	LIMITS_N,
};

/* What a uid may have of each. */
struct limits {
	uint64_t most[LIMITS_N];
};

struct waiter;

enum { LIMITS_IDLE_MAX = 256 };

/* A uid that has something, or whose limits are its own, or one of the LIMITS_IDLE_MAX latest that had something.
 */
struct limits_user {
	uint32_t uid;
	uint64_t now[LIMITS_N];
	struct metrics_usage usage; /* of all its sessions, ever */
	unsigned n_refs;
	bool is_idle; /* counted in n_idle */
	bool has_own; /* limits given for this uid */
	struct limits own;
	struct limits_user *next;
	struct scheduler_user order;
	struct packs_account packs; /* of all its tensors */

	/* The line's for room (waiting.h): what it has there, and its neighbours in turn. */
	struct waiter *waiters;
	struct limits_user *next_turn, *prev_turn;
};

struct limits_table {
	const struct heap *heap;
	struct limits ordinary;	   /* of uids without own ones */
	uint32_t admin;		   /* the daemon's uid: it and root share out sessions with nobody */
	uint64_t all[LIMITS_N];	   /* that the daemon can have of each; 0: not known, or not bounded */
	uint64_t now[LIMITS_N];	   /* that it has */
	uint64_t n_uids;	   /* that have something now */
	unsigned n_idle;	   /* that are kept for what they have asked for alone */
	struct limits_user *users; /* the latest first */
};

/* "sessions", "device_bytes", …; -1 for none. */
int limits_parse_key(const char *name);
const char *limits_name(enum limits_key key);
/* Whether it is not a count. */
bool limits_is_of_bytes(enum limits_key key);

/* `admin`: the daemon's own uid. */
void limits_init(struct limits_table *table, const struct heap *heap, uint32_t admin);
/* Nobody has anything any more. */
void limits_deinit(struct limits_table *table);

/* Gives a uid limits of its own, beginning with the ordinary ones. 0 or -ENOMEM. */
int limits_set_own(struct limits_table *table, uint32_t uid, enum limits_key key, uint64_t most);

/* The user of a uid, for one more of whatever holds it; limits_drop gives it back. NULL without memory. */
struct limits_user *limits_take(struct limits_table *table, uint32_t uid);
void limits_drop(struct limits_table *table, struct limits_user *user);

/* Whether `more` of a key would be within the user's limit. 0; RESOURCE_EXHAUSTED naming key, what there is and
 * the limit. Of what is bounded in all no uid but the admins' may take more than half of what the others have
 * left, so that newcomers always find some. */
int limits_check(const struct limits_table *table, const struct limits_user *user, enum limits_key key,
		 uint64_t more, struct npumem_error *error);

/* What limits_check holds `now` and `more` against. */
uint64_t limits_most(const struct limits_table *table, const struct limits_user *user, enum limits_key key);

void limits_charge(struct limits_table *table, struct limits_user *user, enum limits_key key, uint64_t n);
void limits_give_back(struct limits_table *table, struct limits_user *user, enum limits_key key, uint64_t n);

#endif
