/* What a call holds is its uid's to answer for. */
#ifndef RPC_CHARGE_H
#define RPC_CHARGE_H

#include "daemon/rpc/calls/call.h"

/* Has the message in memory of the call's own, where somebody may point into it. 0, or RESOURCE_EXHAUSTED. */
int charge_own_message(struct call *call);
/* Puts what it holds, or holds more by now, into its uid's books, as it does not end at once, and takes a copy of
 * its message where that is needed: payloads move. 0, or RESOURCE_EXHAUSTED. */
int charge_call(struct call *call);
/* The same, whether or not its uid may; call->error stays as it is. */
void charge_in_any_case(struct call *call);
/* Before the handler takes so much host memory for the call to run in. 0, or RESOURCE_EXHAUSTED. */
int charge_run(struct call *call, size_t bytes);
/* It ends: nothing of it is in the books any more. */
void charge_give_back(struct call *call);

#endif
