/* The service's part of a tensor: owner, name, grants, charges. A record is tensor->owner while the tensor is in
 * the service's tables, and lies behind the tensor in memory. */
#ifndef SERVICE_RECORD_H
#define SERVICE_RECORD_H

#include <string.h>

#include <npumem/types.h>

#include "daemon/device/memory/heap.h"
#include "daemon/device/tensors/tensor.h"

struct limits_user;
struct scheduler_access;
struct session;
struct session_unnamed;

/* What another uid may do with a tensor. */
enum record_access { RECORD_NONE, RECORD_READ, RECORD_WRITE };

enum { RECORD_GRANTS_MAX = 16 };

struct record_grants {
	unsigned n;
	struct {
		uint32_t uid;
		enum record_access access; /* never RECORD_NONE */
	} to[RECORD_GRANTS_MAX];
};

/* The accesses to a root, or to a view itself, for the scheduler: those that have started, and behind them the
 * others in order of arrival.
 */
struct scheduler_queue {
	struct scheduler_access *first, *last, *last_started;
	struct scheduler_access *footprints; /* those with `footprint`, in the same order */
	uint64_t n_waiting : 20;	     /* that are not ready */
	uint64_t n_needs_tensor : 20;	     /* with `needs_tensor` */
	uint64_t n_changes : 20;	     /* with `writes` or `frees` */
};

struct record {
	struct session_unnamed *unnamed; /* of the session that it ends with; NULL: it has a name, or is going */
	uint64_t session_id;		 /* of the session that made it; never changes */
	uint64_t request;		 /* that made it, if its session has a token; else 0 */
	uint32_t request_index : 10;	 /* the tensor's place in the request */
	uint32_t n_footprints : 22;	 /* of `queue` */
	uint32_t maker_cell;		 /* of that session (persist.h) */
	struct record *next_made, *prev_made; /* while is_made: of that session's `made` */
	struct limits_user *user;	      /* the user that is charged */
	uint32_t uid;			      /* the owner's */
	uint32_t host_bytes;		      /* charged for it, its meetings and its grants */
	uint32_t n_views;		      /* of a root: views that are not gone */
	uint32_t claim_at;		      /* see claim_stamp */
	uint64_t changed_at; /* service->changes when it was added, marked going, hidden or renamed */
	bool is_made : 1;
	bool marked : 1;	      /* while a request is checked: the request names it */
	bool is_going : 1;	      /* a free of it has arrived; no request finds it. See record_is_going. */
	bool is_gone : 1;	      /* that free has taken effect. See record_is_gone. */
	bool repeat_reads : 1;	      /* see repeat_stamp */
	bool is_checked : 1;	      /* of a root: its queue was, since an entry began to leave (scheduler.c) */
	uint16_t era;		      /* recorder.era when it was created */
	uint32_t n_met_footprints;    /* of a root: n_footprints of all roots that it meets (scheduler.c) */
	struct scheduler_queue queue; /* the accesses to it */
	uint64_t claim_stamp;	      /* the claim that had it last (rpc/order/claim.h), */
				      /* at claim_at */
	uint64_t read_by, used_by;    /* of a root: sessions (rpc/resume/repeat.h) */
	uint64_t repeat_stamp;	      /* of a root: the request that was last looked at (rpc/resume/repeat.h); */
				      /* repeat_reads: it reads what was there before */
	union {
		struct {			    /* without a name */
			struct record *next, *prev; /* in the session's list */
		};
		struct {			      /* with a name */
			struct record *next_name;     /* in the same bucket of names */
			struct record_grants *grants; /* NULL: nothing was ever granted */
		};
	};
	/* Padded with zeros. Empty: anonymous; the label follows the first byte and may fill the rest. */
	char name[NPUMEM_NAME_BYTES_MAX + 1];
};
_Static_assert(sizeof(struct record) <= 240, "there are many of them: see tensor.h");

static inline struct record *record_of(const struct tensor *tensor)
{
	return tensor->owner;
}

static inline struct scheduler_queue *record_queue(const struct tensor *tensor)
{
	return &record_of(tensor)->queue;
}

/* Whether a request that found `tensor` when service->changes was at most `since` would find it again by the same
 * name or handle. The tensor may be gone: its memory is reused for tensors only. A tensor that is being placed has
 * no owner. */
static inline bool record_is_unchanged(const struct tensor *tensor, uint64_t since)
{
	const struct record *record = record_of(tensor);

	return record && record->changed_at <= since &&
	       (!tensor->base || record_is_unchanged(tensor->base, since));
}

/* For loops over thousands of tensors, which are in no cache: called some iterations before the record is read. */
static inline void record_prefetch(const struct tensor *tensor)
{
	const struct record *record = (const struct record *)(tensor + 1);

	__builtin_prefetch(&record->changed_at);
	__builtin_prefetch(&record->claim_stamp);
}

static inline struct tensor *record_tensor(const struct record *record)
{
	return (struct tensor *)(uintptr_t)record - 1;
}

/* The device bytes that are charged for it. Views have no storage. */
static inline uint64_t record_device_bytes(const struct record *record)
{
	const struct tensor *tensor = record_tensor(record);

	return tensor->base ? 0 : (uint64_t)tensor_footprint_bytes(tensor);
}

/* Writes its label, of NPUMEM_NAME_BYTES_MAX + 1 bytes; false: it has a name or no label. */
static inline bool record_label(const struct record *record, char *label)
{
	size_t n = record->name[0] ? 0 : strnlen(record->name + 1, NPUMEM_NAME_BYTES_MAX);

	memcpy(label, record->name + 1, n);
	label[n] = 0;
	return n > 0;
}

/* NULL: nothing was ever granted. */
static inline struct record_grants *record_grants(const struct record *record)
{
	return record->name[0] ? record->grants : NULL;
}

/* The record of a view's root; NULL: it is a root, or the root's record has ended. */
static inline struct record *record_of_base(const struct record *record)
{
	const struct tensor *base = record_tensor(record)->base;

	return base ? record_of(base) : NULL;
}

/* A view is going or gone when its root is: marking a root is O(1), however many views it has. */
static inline bool record_is_gone(const struct record *record)
{
	const struct record *base = record_of_base(record);

	return record->is_gone || (base && base->is_gone);
}

static inline bool record_is_going(const struct record *record)
{
	const struct record *base = record_of_base(record);

	return record->is_going || record->is_gone || (base && (base->is_going || base->is_gone));
}

#endif
