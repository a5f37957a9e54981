/* One operation of a submit, and the submit as its operations see it. */
#ifndef RPC_PART_H
#define RPC_PART_H

#include "daemon/rpc/handlers/operations/operate.h"

enum {
	SUBMITTED_DONE = 1, /* Submitted.done */
	N_QUEUES = 2,
	CHAIN_MAX = 16, /* operations of one chain */
};

struct part {
	struct operate operate; /* first, so that the one is the other */
	struct submission *submission;
	struct buffer out;
	struct reply own; /* of a group's; else it answers into the call's */
	bool ran;
	size_t bound; /* tensors of the request that were bound before it */
};

struct queue {
	size_t next;
	struct part *busy;
	bool is_refused;
};

struct submission {
	struct call *call;
	const Npumem__V1__SubmitRequest *request;
	size_t mark, expected; /* of the answer */
	size_t index;	       /* of the step's first operation */
	size_t n;	       /* operations of the step; 0: none has begun */
	bool is_group;	       /* the step is a parallel group */
	bool is_chain;	       /* or operations one after the other, which a thread runs */
	atomic_size_t n_begun; /* of a chain: as the thread goes on */
	struct queue queues[N_QUEUES];
	int64_t spent;		   /* cost of what was done in the loop since it gave others a turn */
	size_t refused;		   /* the first operation that was refused; SIZE_MAX: none */
	size_t n_parts;		   /* that there is room for */
	struct npumem_error error; /* the request's, from here on */
	struct part parts[];
};

/* ---- of a submit, also where it has not started ---- */

/* How many operations from `index` on run as one. */
size_t part_group(const Npumem__V1__SubmitRequest *request, size_t index);
/* What its sender calls an operation; empty: nothing. */
const char *part_label(const struct call *call, size_t index);
/* Puts in front of a refusal which operation it is about. `op`: NULL where it could not even be prepared. Returns
 * the status. */
int part_explain(struct call *call, size_t index, const struct op *op);

/* ---- of one that has ---- */

/* Part i takes the operation `index` + i of the request. 0, or what prepare_operation says. */
int part_prepare(struct submission *submission, size_t i);
/* Its place in the answer, and operate_begin. */
int part_begin(const struct submission *submission, struct part *part);
/* It has run, or was refused: it is in the answer, or its queue is over. */
void part_end(struct part *part);
/* The first refusal in the list is the submit's, whichever came first. */
void part_refuse(struct submission *submission, struct part *part, const struct op *op);
/* Whether nothing more of the submit is to begin, as it was cancelled: that is its refusal then. */
bool part_is_cancelled(struct submission *submission);
/* The queue that it runs in: the DMA's, if it is not of a group. */
struct queue *part_queue(struct submission *submission, const struct part *part);
/* What it takes of the answer at least. */
size_t part_bytes(const struct part *part);

#endif
