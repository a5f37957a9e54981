/* From an operation to the call of its kernel. */
#ifndef DEVICE_OP_CALL_H
#define DEVICE_OP_CALL_H

#include "daemon/device/operations/op_operands.h"

/* Matches the operation's roles and parameters to the kernel's row. The tensors' data is not in the call yet. 0 or
 * INVALID. */
int op_call_take(const struct device *device, const struct op *op, struct op_work *work,
		 const struct error_context *context);

#endif
