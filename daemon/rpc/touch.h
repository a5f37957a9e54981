/* What a request touches, told before it runs: for the order of operations. */
#ifndef RPC_TOUCH_H
#define RPC_TOUCH_H

#include "daemon/rpc/call.h"
#include "daemon/service/order.h"

enum {
	/* Of one request; one that touches more waits for everything, and everything for it, so that comparing two
	 * requests stays cheap. */
	TOUCH_ACCESSES_MAX = 256,
};

struct touch {
	struct order_access accesses[TOUCH_ACCESSES_MAX];
	unsigned n_accesses;
	bool barrier; /* touches everything, or cannot be told apart */
	bool changes; /* the tensor table: allocations sent after it come after it */
	int64_t cost; /* op_cost of all its operations; 0 for other calls */
	size_t reply_bytes; /* that its reads will answer with */
};

/* Whatever is wrong with the request is not told here, but when it runs. `scratch` is overwritten. */
void touch_request(const struct session *session, const Npumem__V1__Request *request, struct prepare_op *scratch,
		   struct touch *touch);

#endif
