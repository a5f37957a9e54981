/* What a call holds is charged to its user. */
#ifndef RPC_CHARGE_H
#define RPC_CHARGE_H

#include "daemon/rpc/calls/call.h"

/* Has the message in memory of the call's own, where something may point into it. 0, or RESOURCE_EXHAUSTED. */
int charge_own_message(struct call *call);
/* Charges what it holds, or holds more by now, as it does not end at once, and copies its message where that is
 * needed: payloads move. 0, or RESOURCE_EXHAUSTED. */
int charge_call(struct call *call);
/* The same beyond the limit, too; call->error stays as it is. */
void charge_in_any_case(struct call *call);
/* Before the handler takes so much host memory for the call to run in. 0, or RESOURCE_EXHAUSTED. */
int charge_run(struct call *call, size_t bytes);
void charge_give_back(struct call *call);

#endif
