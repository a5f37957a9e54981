/* Allocations that stand in line for room (service/waiting.h). A call in line is out of the order: what its client
 * sends after it does not wait for it, so that a client can free what it waits for. */
#ifndef RPC_LINE_H
#define RPC_LINE_H

#include "daemon/rpc/calls/call.h"

void line_init(struct rpc *rpc);
/* Whether a call whose handler returned `status` stands in line now, and is not over: an allocation that lacked
 * nothing but room, wants to wait for it and may; or that was in line already. */
bool line_keeps(struct call *call, int status);
/* The daemon goes down: a call that stands in line, or is tried, is refused. */
void line_end(struct call *call);
/* Tries the waiting allocations for room that was freed, in turn: only a part of them where that takes long. */
void line_serve(struct rpc *rpc);
/* The disk has taken a round: the user's allocations that waited for a share of one are tried again. */
void line_synced(struct rpc *rpc, struct limits_user *user);
/* What is due by the clock: turns, and deadlines that are over. */
void line_tick(struct rpc *rpc);
/* When that is; WAITING_NEVER. */
uint64_t line_alarm(const struct rpc *rpc);

#endif
