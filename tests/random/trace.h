/* What a few clients of the daemon send, and what happens meanwhile: drawn from a seed before anything runs, so
 * that a part of it can be left out and the rest still makes sense. A request names tensors by slots: each client
 * has some of its own, and all share a few that are there throughout. */
#ifndef TESTS_RANDOM_TRACE_H
#define TESTS_RANDOM_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TRACE_PEERS = 4,
	TRACE_SLOTS = 6,			      /* of each client */
	TRACE_SHARED = TRACE_SLOTS,		      /* the first slot that all share */
	TRACE_N_SHARED = 4,			      /* the last two lie over one another */
	TRACE_NOBODY = TRACE_SHARED + TRACE_N_SHARED, /* a name that nobody ever has */
	TRACE_OPS = 6,
	TRACE_REFS = 3,
	TRACE_TENSORS = 3,
	TRACE_EVENTS = 400,
	TRACE_NAME_BYTES = 32,
	TRACE_HOST_UID = 900, /* whose the shared ones are */
	TRACE_VALUES = 30,    /* that a uid writes: no other writes one of them */
	/* Of a tensor: what is packed is long, as costs.c says, what is not is short. */
	TRACE_N = 4,
	TRACE_C = 8,
	TRACE_C_NARROW = 5,
	TRACE_W = 104,
};

enum trace_verb {
	TRACE_WRITE,
	TRACE_READ,
	TRACE_FILL,
	TRACE_COPY,
	TRACE_RUN, /* the last one that may be in a submit */
	TRACE_SUBMIT,
	TRACE_ALLOC,
	TRACE_VIEW,
	TRACE_FREE,
	TRACE_OPEN,
	TRACE_SEAL,
	TRACE_GRANT,
	TRACE_LIST,
	TRACE_STAT,
	TRACE_DUMP,
	TRACE_COMPACT,
	TRACE_SUBSCRIBE,
	TRACE_RENAME, /* of one client's alone: from when on others see the new name is not said */
	TRACE_VERBS
};

struct trace_ref {
	unsigned slot;
	bool by_handle; /* the last that the client was told of this slot; by name where it was told none */
};

/* An operation, or what another request does with one tensor. refs[0] is what it writes, or is about. */
struct trace_op {
	enum trace_verb verb;
	unsigned group, n_refs;
	struct trace_ref refs[TRACE_REFS];
	int kernel;	      /* enum _Npumem__V1__Kernel */
	int64_t first, count; /* of a write, read or dump; of a view its first column and those it has */
	int value;	      /* of a fill; of a write the first byte; of a grant the access */
};

struct trace_tensor {
	unsigned slot;
	bool anonymous, packed, narrow, pinned, dma_only;
};

struct trace_request {
	enum trace_verb verb;
	unsigned n_ops, n_tensors;
	struct trace_op ops[TRACE_OPS];
	struct trace_tensor tensors[TRACE_TENSORS];
	unsigned wait_ms;
	bool dry_run;
};

enum trace_kind { TRACE_SEND, TRACE_WORK, TRACE_DONE, TRACE_CLOCK, TRACE_CANCEL, TRACE_CLOSE };

struct trace_event {
	enum trace_kind kind;
	unsigned peer;
	uint64_t pick; /* which task, request or time, of those that there are then */
	struct trace_request request;
};

/* What may be in a trace, and so what can be said of its answers. */
enum trace_mode {
	TRACE_ALONE, /* one client: every answer is what a daemon without threads gives, to the letter */
	TRACE_ROOMY, /* several, with room for all */
	TRACE_TIGHT, /* with waiting allocations, cancels and hang-ups */
	TRACE_CHURN, /* clients of one uid use the same names: only whose bytes are whose can be told */
	TRACE_MODES
};

struct trace {
	uint64_t seed;
	enum trace_mode mode;
	unsigned n_peers;
	bool sequential;   /* each request ends before the next is sent: what this test says of itself */
	bool strict_looks; /* what is told of a tensor's bytes is as in sequence, too */
	unsigned n;
	struct trace_event events[TRACE_EVENTS];
};

const char *trace_mode_name(enum trace_mode mode);
uint64_t trace_random(uint64_t *state);
/* `without`: words for what is left out: the names of requests, "group", "wait", "cancel", "close". */
void trace_draw(uint64_t seed, enum trace_mode mode, const char *without, struct trace *trace);

uint32_t trace_uid(const struct trace *trace, unsigned peer);
/* What peer calls a slot. */
void trace_name(const struct trace *trace, unsigned peer, unsigned slot, char name[TRACE_NAME_BYTES]);
/* Values that this client's uid writes: from here on TRACE_VALUES of them. */
int trace_first_value(const struct trace *trace, unsigned peer);

/* For people: one line. */
void trace_print_request(const struct trace *trace, unsigned peer, const struct trace_request *request, char *text,
			 size_t bytes);

#endif
