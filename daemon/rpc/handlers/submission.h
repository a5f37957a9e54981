/* A submit that has started: it goes from step to step. */
#ifndef RPC_SUBMISSION_H
#define RPC_SUBMISSION_H

#include "daemon/rpc/handlers/submit.h"
#include "daemon/rpc/handlers/operate.h"

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
	size_t n_parts;		   /* that there is room for */
	struct npumem_error error; /* the request's, from here on */
	struct part parts[];
};

enum { CHAIN_MAX = 16 }; /* operations that a thread runs one after the other, which have their places in host memory */

/* Goes on until something runs elsewhere, others are to have a turn, or all is done. What a handler returns. */
int submission_go_on(struct submission *submission);
/* call->withdraw: what of it waits for a thread need not. */
int submission_withdraw(struct call *call);

#endif
