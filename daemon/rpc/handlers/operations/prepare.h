/* From a message to a struct op, with its tensors (order/claim.h) and nothing checked beyond what the wire can get
 * wrong. */
#ifndef RPC_PREPARE_H
#define RPC_PREPARE_H

#include "daemon/device/operations/op.h"
#include "daemon/rpc/order/claim.h"
#include "proto/npumem.pb-c.h"

/* An op and what it points to; the payload of a write stays in the message. */
struct prepare_op {
	struct op op;
	struct op_operand operands[NPUMEM_OPERANDS_MAX];
	struct npumem_param params[NPUMEM_PARAMS_MAX];
};

/* Whether a run's operands are as many, and their roles as long, as a kernel's can be. 0; INVALID. */
int prepare_check_operands(const Npumem__V1__RunRequest *message, struct npumem_error *error);

/* 0; INVALID, also where the operation has no kind, or one that this daemon does not know; NOT_FOUND. `to` is then
 * undefined, but its kind is set. The destination of a read is not set: it is where the reply has room by then. */
int prepare_operation(struct binding *binding, const Npumem__V1__Operation *message, struct prepare_op *to,
		      struct npumem_error *error);

/* What the reply to an op carries, 0 for all but reads; to be asked before or after the check. */
uint64_t prepare_payload_bytes(const struct op *op);

#endif
