/* A submit that has started, as handle_submit.c and chain.c have it. */
#ifndef RPC_SUBMISSION_H
#define RPC_SUBMISSION_H

#include "daemon/rpc/handlers/submit.h"
#include "daemon/rpc/operate.h"

enum {
	N_QUEUES = 2,
};

struct part {
	struct operate operate; /* first, so that the one is the other */
	struct submission *submission;
	struct buffer out;
	struct reply own; /* of a group's; else it answers into the call's */
	bool is_prepared, ran;
	size_t bound; /* of a chain: tensors of the request that were bound before it */
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
	bool is_comparing;	   /* the queues of the step, elsewhere */
	bool is_joining;	   /* the replies of the step, elsewhere */
	size_t n_parts;		   /* that there is room for */
	struct call_work work;	   /* one of these two */
	struct npumem_error error; /* the request's, from here on */
	struct part parts[];
};

/* ---- the submission, for the chain ---- */

/* An operation has run, or was refused: it is in the answer, or its queue is over. */
void submission_end_part(struct part *part);
/* Goes on until something runs elsewhere, others are to have a turn, or all is done. */
void submission_go_on(struct submission *submission);

/* ---- the chain ---- */

enum { CHAIN_MAX = 16 }; /* operations, which have their places in host memory */

/* The step's one operation, which costs so much and was begun, runs on a thread, and those that follow it in the
 * list behind it; they become parts of the step. Then the submission goes on. False: it is too short or too long
 * for that, or something else speaks against it, and nothing was done. */
bool chain_start(struct submission *submission, int64_t cost);
/* It was cancelled: where no thread has begun the chain, it is over. */
void chain_withdraw(struct submission *submission);

#endif
