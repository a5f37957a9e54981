/* What the service knows of a tensor beyond the device: whose it is, and by what name.
 * A record is tensor->owner from the tensor's first moment to its last, and lies in the tensor's own memory. */
#ifndef SERVICE_RECORD_H
#define SERVICE_RECORD_H

#include <npumem/types.h>

#include "daemon/device/memory/heap.h"
#include "daemon/device/tensors/tensor.h"
#include "daemon/service/scheduler.h"

struct session;
struct session_unnamed;
struct limits_user;

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

struct record {
	struct tensor *tensor;
	struct session_unnamed *unnamed;      /* whose end is its own; NULL: it has a name, or is going */
	uint64_t session_id;		      /* of the session that made it, for good */
	uint64_t request;		      /* that made it, of a session with a token; 0: of another */
	uint32_t request_index, maker_cell;   /* the tensor's place in the request; of that session (persist.h) */
	struct record *next_made, *prev_made; /* while is_made: of that session's `made` */
	bool is_made;
	uint32_t uid;		       /* the owner's */
	struct limits_user *user;      /* whom it is charged to */
	uint64_t charge;	       /* device bytes */
	bool marked;		       /* during one request: already met */
	struct scheduler_entry *going; /* the first that frees it; NULL: nothing does */
	bool is_gone;		       /* that has taken effect: nobody finds it any more */
	struct scheduler_queue queue;  /* of a root: who accesses it */
	uint64_t bound;		       /* the latest arrival of a request that found this very tensor */
	uint64_t claim_stamp;	       /* of a root: the claim that had it last (rpc/order/claim.h), */
	size_t claim_at;	       /* and its place there */
	uint64_t read_by, used_by;     /* of a root: sessions (rpc/resume/unsent.h) */
	uint64_t repeat_stamp;	       /* of a root: the request that was last looked at (rpc/resume/repeat.h), */
	bool repeat_reads;	       /* and whether it reads what was there before */
	struct record *next, *prev;    /* of the same session's unnamed ones */
	struct record *next_name;      /* in the same bucket of names */
	struct record_grants *grants;  /* NULL where nothing was ever granted */
	char name[NPUMEM_NAME_BYTES_MAX + 1]; /* filled up with zeros; empty: anonymous */
};

static inline struct record *record_of(const struct tensor *tensor)
{
	return tensor->owner;
}

#endif
