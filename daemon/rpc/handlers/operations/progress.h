/* What is under way, and what is sent unasked: events, and how far long runs are. */
#ifndef RPC_PROGRESS_H
#define RPC_PROGRESS_H

#include "daemon/rpc/calls/call.h"

/* Sends what the subscribers' rings hold, to those that keep up. */
void progress_send(struct rpc *rpc);
/* To one of them, if it keeps up. Returns what that took, in events. */
int progress_send_to(struct rpc *rpc, struct events_subscriber *subscriber);
/* A call's progress is reported from now on until its end, if it runs for a while. */
void progress_follow(struct call *call);
/* A client subscribed to these kinds. */
void progress_subscribed(struct rpc *rpc, unsigned kinds);
/* Puts the progress of each run that is due into the rings of the subscribers that may see it. */
void progress_report(struct rpc *rpc);
/* When it is next due; UINT64_MAX: never. */
uint64_t progress_due(const struct rpc *rpc);

/* ---- what is under way, for people ---- */

enum {
	PROGRESS_ROWS_MOST = 64, /* in one answer */
	PROGRESS_CALLS_MOST = 16384,
	PROGRESS_ROW_BYTES = 768, /* a bound of one in a reply */
};

/* How far a call has come. False where that is not known, yet or ever. */
bool progress_of(const struct call *call, uint64_t *done, uint64_t *total);

/* What a call is, for the eyes of `asking`: "conv2d in=x weights=w out=y", "fill x", "submit relu in=x out=y". Cut
 * to fit. */
void progress_what(const struct session *asking, const struct call *call, char *what, size_t bytes);

/* How much of an answer the calls under way may still take. */
struct progress_room {
	unsigned n;	  /* rows, PROGRESS_ROWS_MOST at first */
	unsigned n_calls; /* calls to visit, PROGRESS_CALLS_MOST at first */
};

/* Appends a Running as field `field` for each call of the session that has begun, without `asking` itself. The
 * asking session may know of the session; room for the rows was reserved. */
void progress_append(struct call *asking, unsigned field, const struct session *session,
		     struct progress_room *room);

#endif
