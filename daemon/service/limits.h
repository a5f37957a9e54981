/* The limits of users, and their charges. A user is an account: a uid, with the uids that are subordinate to it. A
 * charge is counted when a resource is taken, and given back when it is released; the limit is checked before. */
#ifndef SERVICE_LIMITS_H
#define SERVICE_LIMITS_H

#include <npumem/types.h>

#include "daemon/device/arena/occupancy.h"
#include "daemon/device/memory/heap.h"
#include "daemon/device/operations/packs.h"
#include "daemon/device/tensors/totals.h"
#include "daemon/service/observed/metrics.h"
#include "daemon/service/order/fair_queue.h"
#include "daemon/service/order/entries.h"

#define LIMITS_MIB (UINT64_C(1) << 20)

enum limits_key {
#define LIMIT(KEY, name, of_bytes, ordinary, all) LIMITS_##KEY,
#include "daemon/service/limits.def"
#undef LIMIT
	LIMITS_N,
};

/* The limits of a user. */
struct limits {
	uint64_t most[LIMITS_N];
};

struct session;
struct waiter;

enum { LIMITS_IDLE_MAX = 256 };

/* The ways in which a user can stop all others (order/stops.h). */
enum stops_kind { STOPS_COMPACTIONS, STOPS_MAPPINGS, STOPS_KINDS };

/* An account with references or with limits of its own, or one of the latest LIMITS_IDLE_MAX that had
 * references. */
struct limits_user {
	uint32_t uid; /* the account's; its sessions may have other uids */
	uint64_t now[LIMITS_N];
	struct metrics_account account; /* of all its sessions, ever */
	struct totals totals;		/* of its tensors */
	unsigned n_refs;
	struct session *sessions;
	size_t n_sessions;   /* detached ones included */
	unsigned n_detached; /* sessions that wait for their client (rpc/resume/detached.h) */
	bool is_idle;	     /* counted in n_idle */
	bool has_own;	     /* limits given for this account */
	struct limits own;
	struct limits_user *next;
	struct fair_user loop, tasks; /* its work on the loop, and on the worker threads */
	struct fair_user search;      /* on the loop: `searching`, beside the thousands of its other requests */
	struct scheduler_user order;
	struct packs_account packs;		      /* of all its tensors */
	_Atomic uint64_t stops_until_ns[STOPS_KINDS]; /* until then it pays for having stopped others (stops.h) */
	struct occupancy places;		      /* of all its tensors */
	struct occupancy_gaps gaps;		      /* between them and all that cannot move: waiting.h's */

	/* For waiting.h: its waiting allocations, and its neighbours in turn. */
	struct waiter *waiters, *searching;
	uint64_t searched; /* the number of its latest search */
	struct limits_user *next_turn, *prev_turn;
};

struct limits_table {
	const struct heap *heap;
	const struct npumem_geometry *geometry;
	struct limits ordinary; /* of users without limits of their own */
	uint32_t admin;		/* the daemon's uid: its sessions and root's are reserved */
	unsigned stop_percent;	/* of the time that a user may stop others (stops.h); 100: no bound */
	bool any_pins;		/* pins need not leave a place for each user (places.h) */
	/* The account of a uid (server/process/accounts.h). NULL: each uid is an account. */
	uint32_t (*account)(const void *accounts, uint32_t uid);
	const void *accounts;
	uint64_t all[LIMITS_N];	   /* bounds of all users together; 0: unknown or none */
	uint64_t now[LIMITS_N];	   /* charges of all users together */
	uint64_t n_uids;	   /* accounts with references */
	unsigned n_idle;	   /* accounts that are kept only for their metrics */
	struct limits_user *users; /* the latest first */
};

/* "sessions", "device_bytes", …; -1 for none. */
int limits_parse_key(const char *name);
const char *limits_name(enum limits_key key);
/* Whether the key counts bytes. */
bool limits_is_of_bytes(enum limits_key key);

/* `geometry` outlives the table. `admin`: the daemon's own uid. */
void limits_init(struct limits_table *table, const struct heap *heap, const struct npumem_geometry *geometry,
		 uint32_t admin);
/* All references and charges must have been given back. */
void limits_deinit(struct limits_table *table);

/* Sets one limit of a uid's account; its other limits were copied from the ordinary ones. 0 or -ENOMEM. */
int limits_set_own(struct limits_table *table, uint32_t uid, enum limits_key key, uint64_t most);

/* The user of a uid, with one more reference, which limits_drop gives back. NULL without memory. */
struct limits_user *limits_take(struct limits_table *table, uint32_t uid);
/* One more reference to a user that has one. */
static inline struct limits_user *limits_hold(struct limits_user *user)
{
	user->n_refs++;
	return user;
}
void limits_drop(struct limits_table *table, struct limits_user *user);

/* Whether `more` of a key would be within the user's limit. 0; RESOURCE_EXHAUSTED naming the key, the charge and
 * the limit. If all users together have a bound, an ordinary user may have - half of what the others have left, as
 * long as an eighth of all stays free, and - a 1024th of all (at least 1) while anything is left. So of 1000
 * sessions the first users get 500, 250 and 125, and 125 later users get one each. */
int limits_check(const struct limits_table *table, const struct limits_user *user, enum limits_key key,
		 uint64_t more, struct npumem_error *error);

/* The limit that limits_check applies. */
uint64_t limits_most(const struct limits_table *table, const struct limits_user *user, enum limits_key key);

void limits_charge(struct limits_table *table, struct limits_user *user, enum limits_key key, uint64_t n);
void limits_give_back(struct limits_table *table, struct limits_user *user, enum limits_key key, uint64_t n);

#endif
