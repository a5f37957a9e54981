/* Operations of a submit that a thread runs one after the other. */
#ifndef RPC_CHAIN_H
#define RPC_CHAIN_H

#include "daemon/rpc/handlers/operations/part.h"

/* The step's one operation, which was begun and costs `cost`, and those behind it run on a thread, as parts of the
 * step; then done(submission). False: the operation is too short or too long for a chain, or is alone; nothing was
 * done. */
bool chain_start(struct submission *submission, int64_t cost, void (*done)(void *submission));
/* It has run: what ran of it is in the answer. */
void chain_end(struct submission *submission);
/* The call is cancelled. True: no thread had begun the chain, and it has ended. */
bool chain_withdraw(struct submission *submission);

#endif
