/* The beginning of a record on a device with tensors: they are its first entries. A page of them is an entry, like
 * the answer of a list, with their handles. */
#ifndef RPC_RECORD_TENSORS_H
#define RPC_RECORD_TENSORS_H

#include "daemon/rpc/calls/call.h"

struct record_steps {
	/* At the record's moment: a refusal is the call's answer, and nothing is recorded. NULL: nothing to do. */
	int (*begin)(struct call *call);
	/* When all tensors are in the record: makes the answer. 0, or a refusal. */
	int (*answer)(struct call *call);
	/* After begin, where the call is refused and nothing is recorded: returns `status`, or begins a last step.
	 * NULL: nothing to do. */
	int (*undo)(struct call *call, int status);
};

/* For an exclusive call of a session that recorder_check lets record; to be returned from its handler as it is.
 * The record begins at once, and other requests go on at once; the call is answered when all tensors of this
 * moment are in the record. `steps` outlives the call. */
int record_tensors(struct call *call, const struct record_steps *steps);

#endif
