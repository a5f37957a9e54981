/* A submit that has started: it goes from step to step. */
#ifndef RPC_SUBMISSION_H
#define RPC_SUBMISSION_H

#include "daemon/rpc/handlers/operate.h"

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

/* Goes on until something runs elsewhere, others are to have a turn, or all is done. What a handler returns. */
int submission_go_on(struct call *call);
/* call->withdraw: the call is cancelled, and parts that no thread has begun end. */
int submission_withdraw(struct call *call);

/* ---- of a submit, also where it has not started ---- */

/* How many operations from `index` on run as one. */
size_t submission_group(const Npumem__V1__SubmitRequest *request, size_t index);
/* What its sender calls an operation; empty: nothing. */
const char *submission_label(const struct call *call, size_t index);
/* Puts in front of a refusal which operation it is about. `op`: NULL where it could not even be prepared. Returns
 * the status. */
int submission_refuse(struct call *call, size_t index, const struct op *op);
/* An operation that runs on a thread now, its kernel before its transfer, and its label; NULL: none. */
const struct op *submission_running(const struct call *call, const char **label);
/* How far a submit that has started is, in operations, each of KERNEL_PARTS. */
void submission_progress(const struct call *call, uint64_t *done, uint64_t *total);

#endif
