/* Runs one prepared op and appends its Done to the reply. */
#ifndef RPC_OPERATE_H
#define RPC_OPERATE_H

#include "daemon/rpc/call.h"

/* A bound for a Done without warning, destroyed and data, with its own tag and length. */
enum { OPERATE_DONE_BYTES = 64 };

/* The bytes that a read answers with; 0 for other ops and for a read that will be refused. Needs no check before.
 */
uint64_t operate_payload_bytes(const struct op *op);

/* Checks, makes room, runs, and appends Done as field `field`: 0, or a status with nothing changed and nothing
 * appended. A read is gathered into the reply where it stays. */
int operate(struct call *call, unsigned field, struct op *op);

#endif
