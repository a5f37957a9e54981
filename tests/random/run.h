/* A trace against the daemon, and what must be true of its answers. */
#ifndef TESTS_RANDOM_RUN_H
#define TESTS_RANDOM_RUN_H

#include "tests/random/message.h"

enum {
	RUN_NOT_ANSWERED = -1,
	RUN_NPUS = 8,
	RUN_TIGHT_BYTES = 8192,	 /* of an NPU: some 16 tensors */
	RUN_ROOMY_BYTES = 65536, /* more than any trace asks for */
	RUN_WRONG_BYTES = 16384,
	RUN_RECORDS = TRACE_EVENTS + TRACE_PEERS * TRACE_SLOTS, /* with what all read in the end */
};

/* Where a handle came from: which request was told it, and as which of its tensors. */
struct run_source {
	int record; /* -1: the ref is by name; -2: a shared one, known from the start */
	unsigned tensor;
};

/* A request as it was sent, and its answer. */
struct run_record {
	unsigned peer;
	struct trace_request request;
	struct run_source sources[TRACE_OPS][TRACE_REFS];
	uint64_t named[TRACE_OPS][TRACE_REFS]; /* the handles of those; 0: it is by name */
	uint64_t sent, begun, answered;	       /* in turns of the whole run; begun or answered 0: not yet */
	uint64_t sent_ns, answered_ns;
	bool cancelled;	    /* somebody asked for that */
	uint64_t crashed;   /* while it was under way: when, the last time; 0: never */
	bool disturbed;	    /* what it tells of bytes may be of before or after something under way beside it */
	bool among_waiters; /* while an allocation of its client stood in line */
	int status;
	Npumem__V1__Response *response;
	uint64_t handles[TRACE_TENSORS]; /* of the tensors it was told of */
};

/* What the trace leaves, as whoever may read everything sees it. */
struct run_end {
	char *slots[TRACE_PEERS][TRACE_SLOTS], *shared[TRACE_N_SHARED];
};

struct run {
	const struct trace *trace;
	struct run_record records[RUN_RECORDS];
	unsigned n;
	bool views_shared;	      /* a slot may be a view of a shared tensor: what writes it writes that */
	uint64_t closed[TRACE_PEERS]; /* when; 0: never */
	struct run_end end;
	char wrong[RUN_WRONG_BYTES]; /* empty: nothing yet */
	unsigned about;		     /* enum trace_verb of the request that it is about; TRACE_VERBS: of none */
};

/* The first thing that is wrong stays. */
void run_fail(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool run_has_failed(const struct run *run);
void run_free(struct run *run);
/* When it took effect, as far as can be seen. What never began was refused when it arrived, or when others had
 * ended.
 */
uint64_t run_turn_of(const struct run_record *record);

/* Sends it all, works off all tasks, closes all clients. */
void run_trace(const struct trace *trace, struct run *run);
/* Compares with what one client after the other, without threads, would have been answered. */
void run_compare(struct run *run);
/* Says that there is an order of the requests in which a simple model answers them so: of TRACE_GRANTS. */
void run_explain(struct run *run);
/* Says that nobody read a value of another uid. */
void run_check_owners(struct run *run);

/* Both kinds of run have these. */
struct daemon;
enum { RUN_HOST = TRACE_PEERS, RUN_ADMIN, RUN_CLIENTS };
/* One request of the host or the admin; waits for the answer. */
struct run_talk {
	struct daemon *daemon;
	Npumem__V1__Response *response; /* the last answer of any client; owned */
};
void run_talk(struct run_talk *talk, unsigned client, Npumem__V1__Request *request);
/* The same, packed; its id is 1. */
void run_talk_bytes(struct run_talk *talk, unsigned client, const uint8_t *message, size_t bytes);
/* Where a talk is all there is: daemon_options.answered, with the talk as ctx. Events are passed over. */
void run_talk_answered(void *ctx, unsigned client, const uint8_t *message, size_t bytes);
/* Allocates what all share; their handles. */
void run_host(struct run_talk *talk, const struct trace *trace, int64_t npu_bytes,
	      uint64_t handles[TRACE_N_SHARED]);
void run_look(struct run_talk *talk, const struct run *run, struct run_end *end);
void run_sweep(struct run_talk *talk);
void run_end_free(struct run_end *end);
int64_t run_npu_bytes(const struct trace *trace);

#endif
