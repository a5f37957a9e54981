/* What is under way, for people who look on. */
#ifndef RPC_RUNNING_H
#define RPC_RUNNING_H

#include "daemon/rpc/calls/call.h"

enum {
	RUNNING_MOST = 64,   /* that are told of */
	RUNNING_BYTES = 768, /* a bound of one in a reply */
};

/* How far a call has come. False where there is nothing to tell yet, or ever. */
bool running_progress(const struct call *call, uint64_t *done, uint64_t *total);

/* What a call is, for the eyes of `asking`: "conv2d in=x weights=w out=y", "fill x", "submit relu in=x out=y". Cut
 * to fit. */
void running_what(const struct session *asking, const struct call *call, char *what, size_t bytes);

/* Appends a Running as field `field` for each call under way that the asking session may see, `asking` itself left
 * out; room for RUNNING_MOST was reserved. */
void running_tell(struct call *asking, unsigned field);

#endif
