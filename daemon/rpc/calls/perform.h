/* The work of a call whose turn has come. */
#ifndef RPC_PERFORM_H
#define RPC_PERFORM_H

#include "daemon/rpc/calls/call.h"

/* Runs its handler. It may end. */
void perform_begin(struct call *call);
/* What a handler, or a step, returned. */
void perform_go_on(struct call *call, int status);
/* Runs the handler of an allocation in line again. What it returned. */
int perform_again(struct call *call);
/* Ends a call that is under way as soon as can be. It may end now. */
void perform_cancel(struct call *call);

#endif
