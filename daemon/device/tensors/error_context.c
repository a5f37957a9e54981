#include "daemon/device/tensors/error_context.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/device/tensors/tensor.h"

const char *error_context_name(const struct error_context *context, const struct tensor *tensor, char *buffer)
{
	if (context->name)
		context->name(context->ctx, tensor, buffer, ERROR_CONTEXT_NAME_BYTES);
	else
		snprintf(buffer, ERROR_CONTEXT_NAME_BYTES, "tensor #%" PRIu64, tensor->handle);
	return buffer;
}
