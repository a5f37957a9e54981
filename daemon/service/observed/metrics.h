/* Counters of requests and their work: of each session, of each user, and of all users. All counters only rise. A
 * session's counters are in the session, a user's beside its limits. Calls are numbers; there is no clock. */
#ifndef SERVICE_METRICS_H
#define SERVICE_METRICS_H

#include <npumem/types.h>

#include "daemon/device/operations/op.h"

enum {
	METRICS_CALLS_MAX = 40, /* kinds of requests: each user has a row for each */
	METRICS_STATUSES = 16,	/* above every enum npumem_status */
	METRICS_BUCKETS = 26,	/* below 2^0 us, 2^1, ... 2^24 us (16.8 s), and the rest */
};

struct metrics_usage {
	uint64_t requests, errors; /* answered, and how many of them were refused */
	uint64_t bytes_in, bytes_out;
	uint64_t in_flight; /* not a counter: under way now */
};

struct metrics_call {
	uint64_t statuses[METRICS_STATUSES];
	uint64_t buckets[METRICS_BUCKETS]; /* of the time from request to reply; each counts only its own range */
	uint64_t total_ns;
};

struct metrics_activity {
	uint64_t dma_bytes, kernels, macs, saturated, wrapped, destroyed_bytes;
};

/* Of a user, or of all of them. A client gets its user's account only: other users' would disclose their requests
 * and their data, on which `saturated` depends. */
struct metrics_account {
	struct metrics_usage usage;
	uint64_t sessions; /* ever */
	struct metrics_call calls[METRICS_CALLS_MAX];
	struct metrics_activity activity;
};

/* The turns of the loop: a request may wait for one turn before it is handled. */
struct metrics_loop {
	uint64_t turns;
	uint64_t buckets[METRICS_BUCKETS];
	uint64_t total_ns;
	/* Not counters: maxima since metrics_loop_reset of time by the clock, processor time, time asleep. */
	uint64_t longest_ns, longest_cpu_ns, longest_wait_ns;
	bool is_reset; /* in this turn */
};

struct metrics {
	struct metrics_account all;
	struct metrics_loop loop;
};

/* One answered request. */
struct metrics_event {
	unsigned call; /* below METRICS_CALLS_MAX */
	int status;
	uint64_t bytes_in, bytes_out, ns;
};
void metrics_count(struct metrics *metrics, struct metrics_account *user, struct metrics_usage *session,
		   const struct metrics_event *event);
/* A request begins to wait or run, or ends. */
void metrics_flight(struct metrics *metrics, struct metrics_account *user, struct metrics_usage *session,
		    bool begins);

/* Counts an operation that has finished. */
void metrics_op(struct metrics *metrics, struct metrics_account *user, const struct op *op);

/* A turn of the loop that is over: by the clock, of the loop's processor, and how long the loop slept in it. */
void metrics_turn(struct metrics *metrics, uint64_t ns, uint64_t cpu_ns, uint64_t wait_ns);
/* Forgets the maxima at the end of this turn. This turn does not count: it served the reader of the maxima. */
void metrics_loop_reset(struct metrics *metrics);

/* The bucket of a time: the least b with ns < 1000 * 2^b, at most METRICS_BUCKETS - 1. */
unsigned metrics_bucket(uint64_t ns);

#endif
