/* The tables of the service: a struct service for the device, a struct session for each client, and their parts.
 * The functions of a part are in the header of the part's name. */
#ifndef SERVICE_TABLES_H
#define SERVICE_TABLES_H

#include <sys/types.h>

#include "daemon/service/limits.h"
#include "daemon/service/observed/metrics.h"
#include "daemon/service/order/fair_queue.h"
#include "daemon/service/order/scheduler.h"
#include "daemon/service/tensors/names.h"
#include "daemon/store/image/image.h"

/* ---- a session ---- */

enum { IDS_FEW = 4, PERSIST_TOKEN_BYTES = 16 };

struct ids_range {
	uint64_t first, last;
	uint32_t cell; /* for the keeper */
};

/* Zero at first, and when it is empty. A copy takes over the memory. */
struct ids {
	struct ids_range *many; /* in order, none adjacent; NULL: `few` has them */
	unsigned n, room;	/* of `many` */
	struct ids_range few[IDS_FEW];
};

/* The unnamed tensors of a session. Behind a pointer, so that another session that continues this one takes over
 * all of them in one step. */
struct session_unnamed {
	struct record *first;
	uint64_t device_bytes, n; /* whole footprints, over all NPUs; views included */
};

struct session {
	struct service *service;
	uint64_t id; /* > 0; not given again while the daemon lives */
	uint32_t uid;
	struct limits_user *user;	 /* its account's: charges and turns; rights depend on the uid */
	pid_t pid;			 /* of the client, for people; 0 where it is not known */
	struct session_unnamed *unnamed; /* its own */
	struct segment *segments;
	uint64_t last_segment;
	const struct segments_source *segments_source; /* NULL: none can be shared */
	struct metrics_usage usage;
	void *peer; /* rpc's: the sender of its requests; NULL: none came yet */

	/* For its continuation after the daemon was started again (persist.h, results.h). */
	bool is_detached;  /* it waits for its client, and is not charged as one of LIMITS_SESSIONS */
	bool is_continued; /* another session continues it: its own end is not reported */
	bool has_token;
	bool lingers; /* it is kept also when its client goes and the daemon stays */
	uint8_t token[PERSIST_TOKEN_BYTES];
	uint32_t cell;
	uint64_t request;	  /* the id of the current request; 0: its effects are not kept */
	uint64_t answered_below;  /* the client has these answers */
	uint64_t forgotten_below; /* whether requests with lower ids were done is not known any more */
	uint64_t changed_below;	  /* data requests with lower ids are not repeatable, */
	struct ids stale;	  /* nor are these (stale.h) */
	struct record *made;	  /* tensors whose requests' answers the client may not have, the oldest first */
	size_t n_made;
	struct result *results;
	size_t n_results;
	struct session *next, *prev;	       /* of all */
	struct session *user_next, *user_prev; /* of its user */
	struct session *bucket_next;	       /* in its bucket of persist.by_token */
};

/* ---- the service ---- */

enum { RECORDER_REASON_BYTES = 128, PERSIST_BUCKETS = 4096 };

/* The allocations that wait for room (waiting.h). */
struct waiting {
	struct limits_table *limits;
	struct limits_user *first; /* users with a waiting allocation, the one whose turn is next first */
	unsigned n;		   /* waiting allocations */
	uint64_t deadline_ns;	   /* no deadline is earlier; see waiting_expired */
	uint64_t round;
	struct waiter *repeating; /* whose search is repeated; NULL: none */
	uint64_t n_searches;	  /* that have begun */
	bool room;		  /* something was freed or moved since the round began */
	bool has_yielded;	  /* since then a search has ended for what another request claims */
	bool is_due; /* since no request was left to try, one came or left, a window began, or a claim may have
			changed */
};

struct events {
	const struct heap *heap;
	uint64_t (*now_ns)(void);    /* NULL: time stands still */
	const struct session *actor; /* the session that frees tensors now; NULL: none */
	struct events_subscriber *subscribers;
	struct events_subscriber *ready; /* those with events to be sent */
	bool is_low;
};

struct recorder {
	const struct heap *heap;
	const struct session *owner; /* NULL: nothing is recorded */
	struct recorder_entry *first, *last;
	struct recorder_entry *dropped; /* not to be taken; `freeing` frees them in steps */
	size_t bytes;			/* of the entries in both lists, and of transfers under way */
	uint64_t number;
	bool lost;
	char reason[RECORDER_REASON_BYTES];
	/* A recording begins with the existing tensors, over several turns of the loop. Until all of them are in
	 * it, leaves() is called for each tensor that is freed. NULL: all are. */
	void (*leaves)(void *ctx, const struct tensor *tensor);
	void *leaves_ctx;
	uint16_t era; /* changes when a recording begins: later tensors have the new one */
	struct fair_queue *queue;
	struct fair_user *user; /* of `freeing`, which is in `queue` while there are dropped entries */
	struct fair_work freeing;
};

/* The cells of sessions or results. A tensor's cell has the number of its slot. */
struct persist_cells {
	uint32_t *free; /* `room` of them, n in use, so that giving one back takes no memory */
	uint32_t n, room;
	uint32_t n_cells; /* in use or free */
};

struct persist {
	struct store *store; /* NULL: nothing outlives the process */
	const struct heap *heap;
	const char *directory;		       /* for people */
	uint32_t resume_seconds;	       /* for which a session waits for its client */
	int (*random)(void *to, size_t bytes); /* unpredictable bytes; 0 or -errno */
	bool is_replay;			       /* recovery is for one (recover.h) */
	struct persist_cells sessions, results;
	/* Sessions with a token: a hash table of fixed size, so that adding one cannot fail and no turn moves
	 * it. */
	struct session *by_token[PERSIST_BUCKETS];
	struct session **owners; /* by cell; NULL: not in use */
	uint32_t owners_room;
	struct result *spare;	    /* of results.h */
	struct store_run *loop_run; /* of runs.h */
};

enum { RECOVERED_LINES_MAX = 24, RECOVERED_LINE_BYTES = 512 };

struct recover_report {
	uint32_t n_tensors, n_views, n_sessions, n_results; /* kept */
	uint32_t n_ended;     /* unnamed tensors whose session had no token, or tensors that were freed */
	uint32_t n_damaged;   /* cells of tensors that cannot be read */
	uint32_t n_ungranted; /* tensors whose grants are not believed */
	uint32_t n_refused;   /* tensors that cannot be what their cells say */
	uint32_t n_cut;	      /* tensors of which data is lost */
};

/* The report of the recovery at start, kept while the daemon runs. */
struct recovered {
	uint64_t at_ns; /* 0: there was no state, or the time is unknown */
	bool was_clean; /* the process before had closed it */
	struct recover_report report;
	unsigned n_lines;
	char lines[RECOVERED_LINES_MAX][RECOVERED_LINE_BYTES]; /* for people; further lines are left out */
};

struct snapshot {
	struct session *owner; /* NULL: there is none */
	uint64_t number, last_number;
	uint64_t charge;
	bool is_ending;		  /* it has no owner, but its memory is not given back yet */
	struct store_piece piece; /* that was asked for last */
};

struct service {
	struct device *device;
	const struct heap *heap;
	uint32_t uid; /* the daemon's own: it and root may administer everything */
	struct limits_table limits;
	struct names names;
	struct scheduler scheduler; /* of what is under way */
	struct fair_queue queue;    /* of the work that waits for the thread that owns the device */
	struct fair_user self;	    /* for work in it that is done for all users */
	struct waiting waiting;	    /* for room */
	struct events events;
	struct metrics metrics;
	struct recorder recorder;
	struct persist persist;
	struct recovered recovered;
	struct snapshot snapshot;
	struct session *sessions;
	struct session_walk *walks; /* of `sessions` */
	uint64_t n_sessions, last_session;
	uint64_t changes; /* tensors added, marked going, hidden or renamed: see record.h's changed_at */
};

/* True for root and the daemon's own uid. */
static inline bool session_is_admin(const struct session *session)
{
	return session->uid == 0 || session->uid == session->service->uid;
}

#endif
