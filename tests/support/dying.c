/* Linked into npumemd_dying in the place of op_run: a fill with DYING_VALUE ends the process, on whatever thread
 * it runs. */
#include <stdlib.h>

#include "daemon/device/operations/op.h"

enum { DYING_VALUE = 113 };

int __real_op_run(struct device *device, struct op *op, const struct error_context *context);
int __wrap_op_run(struct device *device, struct op *op, const struct error_context *context);

int __wrap_op_run(struct device *device, struct op *op, const struct error_context *context)
{
	int status = __real_op_run(device, op, context);

	if (op->kind == OP_FILL && op->value == DYING_VALUE)
		abort();
	return status;
}
