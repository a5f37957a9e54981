/* What a request touches, told before it runs: for the order of operations. */
#ifndef RPC_TOUCH_H
#define RPC_TOUCH_H

#include "daemon/rpc/call.h"
#include "daemon/service/order.h"

enum {
	/* Of one request, each tensor counted once; of one that touches more, neighbours are taken together with
	 * what lies between them, so that comparing two requests stays cheap. */
	TOUCH_ACCESSES_MAX = 64,
	/* What an operation costs beyond its elements, in the measure of op_cost: finding, checking, answering. */
	TOUCH_OP_COST = 4000,
	TOUCH_PAIR_COST = 400, /* of two operations of one group's lanes */
};

struct touch {
	struct order_access accesses[TOUCH_ACCESSES_MAX];
	unsigned n_accesses;
	bool barrier;	    /* touches everything, or cannot be told apart */
	bool changes;	    /* the tensor table: what its client sends after it may depend on it */
	bool follows;	    /* speaks of tensors that may come or go by such a change */
	bool alone;	    /* takes away what its client's other requests may use */
	int64_t cost;	    /* about the op_cost of all its operations; 0 for other calls */
	size_t reply_bytes; /* that its reads will answer with */
};

/* Whatever is wrong with the request is not told here, but when it runs. `scratch` is overwritten. */
void touch_request(const struct session *session, const Npumem__V1__Request *request, struct prepare_op *scratch,
		   struct touch *touch);

/* Touches nothing yet. */
void touch_begin(struct touch *touch);
/* Adds all bytes of a tensor, written. */
void touch_whole(const struct tensor *tensor, struct touch *touch);

#endif
